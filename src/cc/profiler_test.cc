#include "headrace/profiler.h"

#include <stdlib.h>

#include <fstream>
#include <map>
#include <sstream>

#include "gtest/gtest.h"
#include "headrace/headrace.h"
#include "tsl/profiler/protobuf/xplane.pb.h"

namespace tf = headrace::tf;

namespace {

struct ProfiledEvent {
  int64_t begin, end;
  std::map<std::string, std::string> attributes;
};
// By name, in order.
using ProfiledEvents = std::multimap<std::string, ProfiledEvent>;

std::string ProfileFolder() {
  std::string folder = testing::TempDir() + "/hr_profiler_XXXXXX";
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  return folder;
}

ProfiledEvents EventsIn(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  tensorflow::profiler::XSpace space;
  EXPECT_TRUE(space.ParseFromString(bytes.str())) << path;
  const auto& plane = space.planes(0);
  ProfiledEvents events;
  for (const auto& line : plane.lines()) {
    for (const auto& e : line.events()) {
      ProfiledEvent event{e.offset_ps(), e.offset_ps() + e.duration_ps(), {}};
      for (const auto& s : e.stats()) {
        const auto& names = plane.stat_metadata();
        event.attributes[names.at(s.metadata_id()).name()] =
            s.has_ref_value()      ? names.at(s.ref_value()).name()
            : s.has_double_value() ? std::to_string(s.double_value())
            : s.has_uint64_value() ? std::to_string(s.uint64_value())
                                   : std::to_string(s.int64_value());
      }
      events.emplace(plane.event_metadata().at(e.metadata_id()).name(), event);
    }
  }
  return events;
}

template <typename F>
ProfiledEvents EventsOf(F body, const tf::profiler::Options& options = {}) {
  tf::profiler::Start(ProfileFolder(), options);
  body();
  return EventsIn(tf::profiler::Stop());
}

TEST(Profiler, CallsOfAFunction) {
  const auto f = tf::function<1>([](auto& x) { return tf::Relu(x[0]) * 2.0f; });
  const tf::Tensor x = tf::Tensor::From<float>({1, -1}, {2});
  const ProfiledEvents events = EventsOf([&] {
    for (int i = 0; i < 2; ++i) {
      tf::profiler::Scope scope("train");
      scope.Set("step_num", i).Set("_r", 1);
      f(x);
    }
    tf::Exp(x);
  });
  ASSERT_EQ(events.count("f"), 2u);
  ASSERT_EQ(events.count("train"), 2u);
  auto call = events.find("f"), step = events.find("train");
  using Attributes = std::map<std::string, std::string>;
  EXPECT_EQ(call->second.attributes,
            (Attributes{{"tf_function_call", "traced-nonXla"},
                        {"tracing_count", "1"}}));
  EXPECT_EQ(step->second.attributes,
            (Attributes{{"step_num", "0"}, {"_r", "1"}}));
  EXPECT_LE(step->second.begin, call->second.begin);
  EXPECT_LE(call->second.end, step->second.end);
  EXPECT_EQ((++call)->second.attributes.at("tf_function_call"),
            "notTraced-nonXla");
  EXPECT_EQ((++step)->second.attributes.at("step_num"), "1");
  std::map<std::string, int> executed;  // "name is_func": how often
  const auto [first, last] = events.equal_range("EagerExecute");
  for (auto e = first; e != last; ++e) {
    const Attributes& told = e->second.attributes;
    const std::string name = told.at("eager_op");
    ++executed[name.substr(0, name.rfind('_')) + " " + told.at("is_func")];
    EXPECT_EQ(events.count("EagerLocalExecute: " + name) > 0, true) << name;
  }
  EXPECT_EQ(executed["__inference_f 1"], 2);
  EXPECT_EQ(executed["Exp 0"], 1);
  // The plan's one step.
  EXPECT_EQ(events.count("mul:_FusedElementwise") +
                events.count("Mul:_FusedElementwise"),
            2u);
}

TEST(Profiler, CallsThatFailAreShownToo) {
  const auto f = tf::function<1>([](auto& x) {
    return tf::Reshape(x[0], tf::Tensor::From<int32_t>({3}, {1}));
  });
  const tf::Tensor wrong = tf::Tensor::From<float>({1, 2}, {2});
  const ProfiledEvents events =
      EventsOf([&] { EXPECT_THROW(f(wrong), tf::Error); });
  ASSERT_EQ(events.count("f"), 1u);
  EXPECT_TRUE(events.find("f")->second.attributes.empty());
}

TEST(Profiler, CallsOfStructuresAndOfOneTrace) {
  const auto f = tf::function([](const tf::Tensor& x, int n) { return x * n; },
                              {.name = "scaled"});
  const ProfiledEvents events = EventsOf([&] {
    f(1.0f, 2);
    f.GetConcreteFunction(tf::Tensor(1.0f), 2).Call(tf::Tensor(3.0f), 2);
  });
  ASSERT_EQ(events.count("scaled"), 2u);
  auto call = events.find("scaled");
  EXPECT_EQ(call->second.attributes.at("tf_function_call"), "traced-nonXla");
  EXPECT_EQ((++call)->second.attributes.at("tf_function_call"), "concrete");
}

TEST(Profiler, Attributes) {
  const ProfiledEvents events = EventsOf([] {
    tf::profiler::Scope scope("scope");
    scope.Set("i", -7).Set("u", ~uint64_t{0}).Set("yes", true);
    scope.Set("d", 0.5)
        .Set("f", 0.25f)
        .Set("text", "a")
        .Set(std::string("string"), std::string("b"));
  });
  const std::map<std::string, std::string> expected = {
      {"i", "-7"},    {"u", "18446744073709551615"},
      {"yes", "1"},   {"d", std::to_string(0.5)},
      {"text", "a"},  {"f", std::to_string(0.25)},
      {"string", "b"}};
  ASSERT_EQ(events.count("scope"), 1u);
  EXPECT_EQ(events.find("scope")->second.attributes, expected);
}

TEST(Profiler, LevelsAndDelay) {
  const auto body = [] {
    const tf::profiler::Scope scope("scope");
    tf::Exp(tf::Tensor(1.0f));
  };
  EXPECT_EQ(EventsOf(body, {.host_tracer_level = 0}).size(), 0u);
  EXPECT_EQ(EventsOf(body, {.host_tracer_level = 1}).size(), 1u);
  EXPECT_EQ(EventsOf(body, {.host_tracer_level = 2}).size(), 3u);
  EXPECT_EQ(EventsOf(body, {.delay = std::chrono::hours(1)}).size(), 0u);
}

template <typename F>
tf::ErrorCode CodeOfProfiler(F call) {
  try {
    call();
  } catch (const tf::Error& e) {
    return e.code();
  }
  ADD_FAILURE() << "the call succeeded";
  return tf::ErrorCode::kUnknown;
}

TEST(Profiler, OneAtATimeAndNothingWithoutOne) {
  namespace profiler = tf::profiler;
  const auto stop = [] { profiler::Stop(); };
  EXPECT_EQ(CodeOfProfiler(stop), tf::ErrorCode::kUnavailable);
  auto late = std::make_unique<profiler::Scope>("begun before");
  late->Set("x", 1);
  profiler::Start(ProfileFolder());
  late.reset();
  EXPECT_EQ(CodeOfProfiler([] { profiler::Start("x"); }),
            tf::ErrorCode::kAlreadyExists);
  EXPECT_EQ(EventsIn(profiler::Stop()).size(), 0u);
  profiler::Start("/proc/nowhere");
  EXPECT_EQ(profiler::Stop(/*save=*/false), "");
  profiler::Start("/proc/nowhere");
  EXPECT_THROW(stop(), tf::Error);
  EXPECT_EQ(CodeOfProfiler(stop), tf::ErrorCode::kUnavailable);
}

}  // namespace
