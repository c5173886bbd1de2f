// Event files: which tags there are, and what was written under them.
#include <map>
#include <optional>

#include "command/show/show.h"
#include "command/text/array_text.h"
#include "command/text/json_writer.h"
#include "formats/events.h"
#include "tensor/tensor_proto.h"
#include "tensorflow/core/util/event.pb.h"

namespace headrace::command {
namespace {

using tensorflow::Event;
using tensorflow::Summary;

struct TagFacts {
  std::string kind;  // "scalars", "images", ...
  int64_t count = 0, first_step = 0, last_step = 0;
  std::string last;  // its text, where it is short
};

struct EventFacts {
  std::string version, writer;
  int64_t count = 0;
  double begin = 0, end = 0;  // seconds since 1970
  int64_t graphs = 0, runs = 0;
  std::map<std::string, TagFacts> tags;
};

// What TensorBoard's plugin of a value is called, or what the value is.
std::string KindOf(const Summary::Value& v, const std::string& known) {
  if (!v.metadata().plugin_data().plugin_name().empty()) {
    return v.metadata().plugin_data().plugin_name();
  }
  switch (v.value_case()) {
    case Summary::Value::kSimpleValue:
      return "scalars";
    case Summary::Value::kImage:
      return "images";
    case Summary::Value::kHisto:
    case Summary::Value::kObsoleteOldStyleHistogram:
      return "histograms";
    case Summary::Value::kAudio:
      return "audio";
    // Only the first value of a tag says what it is.
    default:
      return known.empty() ? "tensors" : known;
  }
}

std::string ValueText(const Summary::Value& v) {
  constexpr int64_t kMostElements = 8;
  if (v.value_case() == Summary::Value::kSimpleValue) {
    return ArrayText(Tensor::Scalar<float>(v.simple_value()));
  }
  if (v.value_case() != Summary::Value::kTensor) return "";
  int64_t count = 1;
  for (const auto& d : v.tensor().tensor_shape().dim()) {
    if (d.size() < 0 || d.size() > kMostElements) return "";
    count *= d.size();
    if (count > kMostElements) return "";
  }
  const StatusOr<Tensor> t = TensorFromProto(v.tensor());
  if (!t.ok() || !IsPlain(t->dtype())) return "";
  return ArrayText(*t);
}

void AddEvent(const Event& event, EventFacts* facts) {
  if (facts->count++ == 0) facts->begin = event.wall_time();
  facts->end = event.wall_time();
  if (event.has_file_version()) {
    facts->version = event.file_version();
    facts->writer = event.source_metadata().writer();
  }
  facts->graphs += event.has_graph_def() || event.has_meta_graph_def();
  facts->runs += event.has_tagged_run_metadata();
  for (const Summary::Value& v : event.summary().value()) {
    TagFacts& tag = facts->tags[v.tag()];
    if (tag.count++ == 0) tag.first_step = event.step();
    tag.last_step = event.step();
    tag.kind = KindOf(v, tag.kind);
    tag.last = ValueText(v);
  }
}

void PrintEvent(const Event& event, Output& out) {
  for (const Summary::Value& v : event.summary().value()) {
    const std::string text = ValueText(v);
    out.Print("step ", event.step(), " ", Escaped(v.tag()),
              text.empty() ? "" : ": ", text, "\n");
  }
}

void PrintFacts(const EventFacts& facts, Output& out) {
  out.Print("Event file ", Escaped(facts.version), ": ", facts.count,
            " events, ", facts.tags.size(), " tags, ", facts.graphs,
            " graphs, ", facts.runs, " profiled runs, ",
            absl::StrCat(facts.end - facts.begin), " seconds\n");
  for (const auto& [name, tag] : facts.tags) {
    out.Print("  ", Escaped(name), " (", Escaped(tag.kind), "): ", tag.count,
              " values, steps ", tag.first_step, " to ", tag.last_step,
              tag.last.empty() ? "" : absl::StrCat(", last ", tag.last), "\n");
  }
}

void WriteFacts(const Source& source, const EventFacts& facts, Output& out) {
  JsonWriter json;
  json.BeginObject();
  json.Member("kind", "events");
  json.Member("path", source.given);
  json.Member("file_version", facts.version);
  json.Member("writer", facts.writer);
  json.IntMember("count", facts.count);
  json.Key("begin");
  json.Number(facts.begin);
  json.Key("end");
  json.Number(facts.end);
  json.IntMember("graphs", facts.graphs);
  json.Key("tags");
  json.BeginObject();
  for (const auto& [name, tag] : facts.tags) {
    json.Key(name);
    json.BeginObject();
    json.Member("kind", tag.kind);
    json.IntMember("count", tag.count);
    json.IntMember("first_step", tag.first_step);
    json.IntMember("last_step", tag.last_step);
    if (!tag.last.empty()) json.Member("last", tag.last);
    json.End();
  }
  json.End();
  json.End();
  out.Print(json.Take());
}

}  // namespace

Status ShowEvents(const Source& source, const Arguments& args, Output& out) {
  HR_ASSIGN_OR_RETURN(auto reader, EventReader::Open(source.fs, source.path));
  const bool each = args.Has("all") && !args.Has("json");
  EventFacts facts;
  while (!out.closed()) {
    Event event;
    const StatusOr<bool> more = reader->Next(&event);
    if (!more.ok()) {
      return Status(more.status().code(),
                    absl::StrCat(source.given, ": ", more.status().message(),
                                 ", after ", facts.count, " events"));
    }
    if (!*more) break;
    AddEvent(event, &facts);
    if (each) PrintEvent(event, out);
  }
  if (args.Has("json")) {
    WriteFacts(source, facts, out);
  } else {
    PrintFacts(facts, out);
  }
  return OkStatus();
}

}  // namespace headrace::command
