#include "formats/profile.h"

#include <stdlib.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "gtest/gtest.h"
#include "tsl/profiler/protobuf/profiler_options.pb.h"
#include "tsl/profiler/protobuf/xplane.pb.h"

namespace headrace {
namespace {

using tensorflow::profiler::XEvent;
using tensorflow::profiler::XPlane;
using tensorflow::profiler::XSpace;
using tensorflow::profiler::XStat;
using timeline::Event;

std::string NewFolder() {
  std::string folder = testing::TempDir() + "/hr_profile_XXXXXX";
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  return folder;
}

XSpace Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  XSpace space;
  EXPECT_TRUE(space.ParseFromString(bytes.str())) << path;
  return space;
}

// Of what `body` does.
template <typename F>
XSpace ProfileOf(F body, const ProfileOptions& options = {}) {
  EXPECT_TRUE(StartProfile(NewFolder(), options).ok());
  body();
  const StatusOr<Profile> profile = StopProfile(true);
  EXPECT_TRUE(profile.ok()) << profile.status();
  return Read(profile->path);
}

std::string Text(const XPlane& plane, const XStat& stat) {
  const std::string name = plane.stat_metadata().at(stat.metadata_id()).name();
  switch (stat.value_case()) {
    case XStat::kInt64Value:
      return absl::StrCat(name, "=", stat.int64_value());
    case XStat::kUint64Value:
      return absl::StrCat(name, "=", stat.uint64_value(), "u");
    case XStat::kDoubleValue:
      return absl::StrCat(name, "=", stat.double_value(), "d");
    case XStat::kRefValue:
      return absl::StrCat(name, "=",
                          plane.stat_metadata().at(stat.ref_value()).name());
    default:
      return name;
  }
}

// "name (shown) attribute=value".
std::string Text(const XPlane& plane, const XEvent& event) {
  const auto& info = plane.event_metadata().at(event.metadata_id());
  std::string text = info.name();
  if (!info.display_name().empty()) {
    absl::StrAppend(&text, " (", info.display_name(), ")");
  }
  for (const XStat& stat : event.stats()) {
    absl::StrAppend(&text, " ", Text(plane, stat));
  }
  return text;
}

using Lines = std::vector<std::string>;

TEST(Profile, EventsHaveUpstreamsNames) {
  const XSpace space = ProfileOf([] {
    const int64_t t = timeline::Now();
    const timeline::Attributes attributes = {
        {"i", int64_t{-1}}, {"u", ~uint64_t{0}}, {"d", 0.5}, {"s", "text"}};
    // As they are told, inner ones first.
    timeline::Record({Event::Kind::kStep, 0, "node", "Relu", t + 4, t + 5});
    timeline::Record(
        {Event::Kind::kFunction, 0, "__inference_f_1", "", t + 3, t + 6});
    timeline::Record({Event::Kind::kOp, 0, "MatMul", "", t + 7, t + 8});
    timeline::Record(
        {Event::Kind::kScope, 0, "scope", "", t + 3, t + 9, attributes});
  });
  EXPECT_EQ(space.hostnames_size(), 1);
  EXPECT_EQ(space.errors_size() + space.warnings_size(), 0);
  ASSERT_EQ(space.planes_size(), 2);
  const XPlane& plane = space.planes(0);
  EXPECT_EQ(plane.name(), "/host:CPU");
  ASSERT_EQ(plane.lines_size(), 1);
  Lines events;
  int64_t begin = 0;
  for (const XEvent& e : plane.lines(0).events()) {
    events.push_back(Text(plane, e));
    EXPECT_LE(begin, e.offset_ps());
    begin = e.offset_ps();
  }
  EXPECT_EQ(events,
            (Lines{"scope i=-1 u=18446744073709551615u d=0.5d s=text",
                   "EagerExecute eager_op=__inference_f_1 is_func=1",
                   "EagerLocalExecute: __inference_f_1", "node:Relu (Relu)",
                   "EagerExecute eager_op=MatMul is_func=0",
                   "EagerLocalExecute: MatMul"}));
  EXPECT_EQ(plane.lines(0).events(0).duration_ps(), 6000);
  EXPECT_EQ(plane.lines(0).events(3).offset_ps() -
                plane.lines(0).events(0).offset_ps(),
            1000);
}

TEST(Profile, TheEnvironmentTellsTimesAndOptions) {
  const XSpace space = ProfileOf([] {}, {.host_level = 3, .delay_ms = 5});
  const XPlane& plane = space.planes(1);
  EXPECT_EQ(plane.name(), "Task Environment");
  ASSERT_EQ(plane.stats_size(), 3);
  const auto name = [&](int i) {
    return plane.stat_metadata().at(plane.stats(i).metadata_id()).name();
  };
  EXPECT_EQ(name(0), "profile_start_time");
  EXPECT_EQ(name(1), "profile_stop_time");
  EXPECT_GT(plane.stats(0).uint64_value(), 0);
  EXPECT_LE(plane.stats(0).uint64_value(), plane.stats(1).uint64_value());
  EXPECT_EQ(name(2), "profile_options");
  tensorflow::ProfileOptions options;
  ASSERT_TRUE(options.ParseFromString(plane.stats(2).bytes_value()));
  EXPECT_EQ(options.host_tracer_level(), 3);
  EXPECT_EQ(options.start_timestamp_ns(), plane.stats(0).uint64_value());
}

TEST(Profile, ThreadsHaveLinesAndNamesAreMadeUtf8) {
  const auto record = [] {
    const timeline::Span span(Event::Kind::kScope,
                              StringView("a\0\xff\xc3\xa9", 5));
  };
  const XSpace space = ProfileOf([&] {
    record();
    std::thread(record).join();
  });
  const XPlane& plane = space.planes(0);
  ASSERT_EQ(plane.lines_size(), 2);
  EXPECT_NE(plane.lines(0).id(), plane.lines(1).id());
  EXPECT_NE(plane.lines(0).name(), plane.lines(1).name());
  EXPECT_EQ(plane.event_metadata_size(), 1);
  EXPECT_EQ(Text(plane, plane.lines(1).events(0)),
            std::string("a\0\xef\xbf\xbd\xc3\xa9", 7));
}

TEST(Profile, EachHasAFileOfItsOwn) {
  const std::string folder = NewFolder();
  std::string paths[3];
  for (std::string& path : paths) {
    ASSERT_TRUE(StartProfile(folder, {}).ok());
    path = StopProfile(true)->path;
    Read(path);
  }
  EXPECT_NE(paths[0], paths[1]);
  EXPECT_NE(paths[1], paths[2]);
  EXPECT_EQ(paths[0].rfind(folder + "/plugins/profile/", 0), 0u);
  EXPECT_TRUE(paths[0].ends_with(".xplane.pb"));
  ASSERT_TRUE(StartProfile(folder, {}).ok());
  EXPECT_EQ(StopProfile(false)->path, "");
}

TEST(Profile, WhatIsLeftOutIsAWarning) {
  const XSpace space = ProfileOf([] {
    Event large{Event::Kind::kScope, 0, "large"};
    large.begin = large.end = timeline::Now();
    large.attributes = {{"text", std::string(130 << 20, 'x')}};
    timeline::Record(std::move(large));
  });
  ASSERT_EQ(space.warnings_size(), 1);
  EXPECT_EQ(space.warnings(0).rfind("1 events were left out", 0), 0u);
}

TEST(Profile, RefusesAndEnds) {
  using absl::StatusCode;
  EXPECT_EQ(StopProfile(true).status().code(), StatusCode::kUnavailable);
  for (const ProfileOptions& wrong :
       {ProfileOptions{.delay_ms = -1}, ProfileOptions{.host_level = -1},
        ProfileOptions{.delay_ms = INT64_MAX}}) {
    EXPECT_EQ(StartProfile("x", wrong).code(), StatusCode::kInvalidArgument);
  }
  ASSERT_TRUE(StartProfile("/proc/nowhere", {}).ok());
  EXPECT_EQ(StartProfile("x", {}).code(), StatusCode::kAlreadyExists);
  EXPECT_FALSE(StopProfile(true).ok());
  EXPECT_EQ(StopProfile(true).status().code(), StatusCode::kUnavailable);
  EXPECT_FALSE(timeline::On());
}

}  // namespace
}  // namespace headrace
