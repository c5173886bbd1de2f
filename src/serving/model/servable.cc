#include "serving/model/servable.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "op/emitter.h"
#include "saved_model/signature.h"
#include "serving/model/direct_runner.h"

namespace headrace::serving {
namespace {

// Sets of outputs of one version whose runners are kept: each is a plan.
constexpr size_t kMostRunners = 64;

// One of a function, some of whose results are asked for.
StatusOr<RunnerPtr> RunnerOfFunction(const ConcreteFunction& f,
                                     std::vector<int> inputs,
                                     absl::Span<const int> results,
                                     int64_t max_request_memory_bytes) {
  const Function& function = *f.function();
  DirectRun run;
  run.graph = function.body.get();
  for (Node* arg : function.args) run.feeds.push_back({arg, 0});
  for (const int i : results) run.fetches.push_back(function.results[i]);
  run.targets = function.control_outputs;
  run.inputs = std::move(inputs);
  for (const Value& v : f.captures()) run.captures.push_back(v.tensor());
  run.max_request_memory_bytes = max_request_memory_bytes;
  run.keep = f.function();
  return MakeDirectRunner(std::move(run));
}

std::vector<int> PlacesUpTo(size_t n) {
  std::vector<int> places(n);
  std::iota(places.begin(), places.end(), 0);
  return places;
}

// The places of the names, in the order of the names.
std::vector<int> SortedPlaces(const std::vector<std::string>& names) {
  std::vector<int> places = PlacesUpTo(names.size());
  std::sort(places.begin(), places.end(),
            [&](int a, int b) { return names[a] < names[b]; });
  return places;
}

}  // namespace

std::vector<int> Signature::AllOutputs() const {
  return PlacesUpTo(outputs.size());
}

StatusOr<std::shared_ptr<Servable>> Servable::Load(
    ServableId id, const std::string& folder, const ServableOptions& options) {
  std::shared_ptr<Servable> made(new Servable(std::move(id), folder, options));
  LoadedModel::Options load;
  load.tags = options.tags;
  load.sandbox = options.sandbox;
  load.as_session = options.session;
  HR_ASSIGN_OR_RETURN(made->model_, LoadedModel::Load(folder, load));
  HR_RETURN_IF_ERROR(made->AddSignatures());
  if (options.session) {
    made->session_ = std::make_unique<ModelSession>(
        made->model_, options.sandbox, options.max_request_memory_bytes);
  }
  return made;
}

Status Servable::AddSignatures() {
  HR_ASSIGN_OR_RETURN(auto found, SignaturesOf(*model_));
  for (auto& [key, model_signature] : found) {
    if (key == kInitOpKey) continue;
    auto def = meta_graph().signature_def().find(key);
    if (def == meta_graph().signature_def().end()) continue;
    const Function& f = *model_signature.function->function();
    Signature s;
    s.key = key;
    s.def = &def->second;
    for (const int i : SortedPlaces(model_signature.inputs)) {
      s.function_inputs.push_back(i);
      s.inputs.push_back({model_signature.inputs[i], f.args[i]->output_type(0),
                          f.args[i]->output_shape(0)});
    }
    for (const int i : SortedPlaces(model_signature.outputs)) {
      s.function_outputs.push_back(i);
      const Edge& e = f.results[i];
      s.outputs.push_back({model_signature.outputs[i],
                           e.node->output_type(e.index),
                           e.node->output_shape(e.index)});
    }
    s.function = std::move(model_signature.function);
    signatures_.emplace(key, std::move(s));
  }
  return OkStatus();
}

const Signature* Servable::signature(StringView key) const {
  auto it = signatures_.find(key.empty() ? StringView(kDefaultSignature) : key);
  return it == signatures_.end() ? nullptr : &it->second;
}

StatusOr<RunnerPtr> Servable::RunnerOf(const Signature& signature,
                                       absl::Span<const int> outputs) {
  MutexLock lock(mutex_);
  for (auto it = runners_.begin(); it != runners_.end(); ++it) {
    if (it->signature != &signature || outputs != it->outputs) continue;
    std::rotate(runners_.begin(), it, it + 1);
    return runners_.front().runner;
  }
  std::vector<int> results;
  for (const int i : outputs) results.push_back(signature.function_outputs[i]);
  const SandboxScope scope(options_.sandbox);
  HR_ASSIGN_OR_RETURN(
      RunnerPtr runner,
      RunnerOfFunction(*signature.function, signature.function_inputs, results,
                       options_.max_request_memory_bytes));
  if (options_.wrap) {
    runner = options_.wrap(std::move(runner), signature, outputs);
  }
  if (runners_.size() == kMostRunners) runners_.pop_back();
  runners_.insert(runners_.begin(),
                  {&signature, {outputs.begin(), outputs.end()}, runner});
  return runner;
}

}  // namespace headrace::serving
