#include "serving/v2/v2_json.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "serving/json/json_writer.h"

namespace headrace::serving {
namespace {

std::string Quoted(const std::string& text) {
  std::string out;
  AppendJsonString(text, &out);
  return out;
}

// [f(element), ...]
template <typename List, typename F>
std::string ListOf(const List& list, F f) {
  return absl::StrCat("[",
                      absl::StrJoin(list, ",",
                                    [&f](std::string* out, const auto& one) {
                                      out->append(f(one));
                                    }),
                      "]");
}

std::string ArgumentJson(
    const inference::ModelMetadataResponse::TensorMetadata& t) {
  return absl::StrCat("{\"name\":", Quoted(t.name()),
                      ",\"datatype\":", Quoted(t.datatype()), ",\"shape\":[",
                      absl::StrJoin(t.shape(), ","), "]}");
}

std::string DurationJson(const inference::StatisticDuration& d) {
  return absl::StrCat("{\"count\":", d.count(), ",\"ns\":", d.ns(), "}");
}

}  // namespace

std::string ServerMetadataJson(
    const inference::ServerMetadataResponse& server) {
  return absl::StrCat("{\"name\":", Quoted(server.name()),
                      ",\"version\":", Quoted(server.version()),
                      ",\"extensions\":", ListOf(server.extensions(), Quoted),
                      "}");
}

std::string ModelMetadataJson(const inference::ModelMetadataResponse& model) {
  return absl::StrCat("{\"name\":", Quoted(model.name()),
                      ",\"versions\":", ListOf(model.versions(), Quoted),
                      ",\"platform\":", Quoted(model.platform()),
                      ",\"inputs\":", ListOf(model.inputs(), ArgumentJson),
                      ",\"outputs\":", ListOf(model.outputs(), ArgumentJson),
                      "}");
}

std::string IndexJson(const inference::RepositoryIndexResponse& index) {
  return ListOf(index.models(), [](const auto& m) {
    return absl::StrCat("{\"name\":", Quoted(m.name()),
                        ",\"version\":", Quoted(m.version()),
                        ",\"state\":", Quoted(m.state()),
                        ",\"reason\":", Quoted(m.reason()), "}");
  });
}

std::string StatisticsJson(
    const inference::ModelStatisticsResponse& statistics) {
  return absl::StrCat(
      "{\"model_stats\":",
      ListOf(statistics.model_stats(),
             [](const auto& m) {
               return absl::StrCat(
                   "{\"name\":", Quoted(m.name()),
                   ",\"version\":", Quoted(m.version()),
                   ",\"last_inference\":", m.last_inference(),
                   ",\"inference_count\":", m.inference_count(),
                   ",\"execution_count\":", m.execution_count(),
                   ",\"inference_stats\":{\"success\":",
                   DurationJson(m.inference_stats().success()),
                   ",\"fail\":", DurationJson(m.inference_stats().fail()),
                   "}}");
             }),
      "}");
}

}  // namespace headrace::serving
