#include "bind/python/profiler.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "bind/python/graph_object.h"
#include "formats/profile.h"
#include "formats/step_stats.h"
#include "graph/step_labels.h"
#include "op/processor.h"
#include "runtime/ran_functions.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/step_stats.pb.h"

namespace nb = nanobind;

namespace headrace::bind {
namespace {

template <typename Proto>
nb::bytes BytesOf(const Proto& proto) {
  const std::string bytes = proto.SerializeAsString();
  return nb::bytes(bytes.data(), bytes.size());
}

// [(graph as traced, graph as planned)] as GraphDefs; ends the collecting.
nb::list TakeRanGraphs() {
  nb::list out;
  for (const FunctionPtr& f : TakeRanFunctions()) {
    tensorflow::GraphDef traced, planned;
    Status s = TracedGraph(*f, &traced);
    if (s.ok()) s = PlannedGraph(f, &planned);
    if (!s.ok()) ThrowStatus(s);
    out.append(nb::make_tuple(BytesOf(traced), BytesOf(planned)));
  }
  return out;
}

void StartProfileNow(const std::string& folder, int host_level,
                     int64_t delay_ms) {
  Status s = StartProfile(folder, {host_level, delay_ms});
  if (!s.ok()) ThrowStatus(s);
}

// The steps as a serialised StepStats where they are wanted, else "".
nb::bytes StopProfileNow(bool save, bool steps) {
  StatusOr<Profile> profile;
  {
    WithoutGil unlocked;  // a file is written
    profile = StopProfile(save);
  }
  if (!profile.ok()) ThrowStatus(profile.status());
  return steps ? StepStatsOf(profile->recording.events) : nb::bytes("", 0);
}

timeline::Attribute AttributeOf(nb::handle value) {
  if (PyFloat_Check(value.ptr())) return nb::cast<double>(value);
  if (int64_t i; nb::try_cast(value, i)) return i;
  if (uint64_t u; nb::try_cast(value, u)) return u;
  return nb::cast<std::string>(nb::str(value));
}

// A scope of the user's that ends now; attributes are {str: int, float or what
// becomes a text}.
void RecordScope(const std::string& name, int64_t begin, nb::dict attributes) {
  timeline::Event event{
      timeline::Event::Kind::kScope, 0, name, "", begin, timeline::Now(), {}};
  for (auto [key, value] : attributes) {
    event.attributes.emplace_back(nb::cast<std::string>(key),
                                  AttributeOf(value));
  }
  timeline::Record(std::move(event));
}

}  // namespace

nb::bytes StepStatsOf(const std::deque<timeline::Event>& events,
                      const Graph* graph, int processors) {
  tensorflow::StepStats stats;
  AddStepStats(events, &stats);
  if (graph != nullptr) {
    LabelInputs(*graph, &stats);
    SortByDevice(*graph, ProcessorNames(processors), &stats);
  }
  return BytesOf(stats);
}

void AddProfiler(nb::module_& m) {
  m.def("start_profile", &StartProfileNow);
  m.def("stop_profile", &StopProfileNow, nb::arg("save"),
        nb::arg("steps") = false);
  m.def("timeline_on", &timeline::On);
  m.def("timeline_now", &timeline::Now);
  m.def("record_scope", &RecordScope);
  m.def("collect_ran_functions", &CollectRanFunctions);
  m.def("take_ran_graphs", &TakeRanGraphs);
}

}  // namespace headrace::bind
