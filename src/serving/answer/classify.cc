// PredictionService.Classify, Regress and MultiInference: what examples give.
#include <set>

#include "base/guard.h"
#include "serving/answer/answers.h"
#include "serving/answer/examples.h"
#include "serving/answer/method_names.h"

namespace headrace::serving {
namespace {

using tensorflow::serving::ClassificationRequest;
using tensorflow::serving::ClassificationResponse;
using tensorflow::serving::InferenceTask;
using tensorflow::serving::MultiInferenceRequest;
using tensorflow::serving::MultiInferenceResponse;
using tensorflow::serving::RegressionRequest;
using tensorflow::serving::RegressionResponse;

Status NoExampleSignature(const std::string& key) {
  return InvalidArgument("No signature was found with the name: ", key);
}

// One signature over examples.
struct ExampleRun {
  Target target;
  std::vector<int> places;
  RunnerPtr runner;
};

using OutputsOf = StatusOr<std::vector<int>> (*)(const Signature&);

Status PrepareRun(Target target, OutputsOf outputs, const char* method,
                  const AnswerOptions& options, ExampleRun* run) {
  run->target = std::move(target);
  const Signature& signature = *run->target.signature;
  if (options.check_method_names) {
    HR_RETURN_IF_ERROR(CheckMethodName(signature, "example", {method}));
  }
  HR_ASSIGN_OR_RETURN(run->places, outputs(signature));
  HR_ASSIGN_OR_RETURN(run->runner,
                      run->target.servable->RunnerOf(signature, run->places));
  return OkStatus();
}

// Runs it and gives `done` what `tell` puts into a response.
template <typename Response, typename Tell>
void Answer(ExampleRun run, CallPtr call, Tensor examples, Tell tell,
            Done<Response> done) {
  Runner& runner = *run.runner;
  const int64_t n = examples.num_elements();
  Tensors inputs;
  inputs.push_back(std::move(examples));
  runner.Run(std::move(call), std::move(inputs),
             [run = std::move(run), n, tell,
              done = std::move(done)](StatusOr<Tensors> outputs) {
               if (!outputs.ok()) return done(outputs.status());
               Response response;
               const Status s = Guarded("a response", [&] {
                 return tell(run, *outputs, n, &response);
               });
               if (!s.ok()) return done(s);
               done(std::move(response));
             });
}

Status TellClasses(const ExampleRun& run, const Tensors& outputs, int64_t n,
                   ClassificationResponse* response) {
  SetSpec(run.target, response->mutable_model_spec());
  return ClassifyResult(*run.target.signature, run.places, outputs, n,
                        response->mutable_result());
}

Status TellValues(const ExampleRun& run, const Tensors& outputs, int64_t n,
                  RegressionResponse* response) {
  SetSpec(run.target, response->mutable_model_spec());
  return RegressResult(outputs, n, response->mutable_result());
}

template <typename Request, typename Response, typename Tell>
void OneSignature(Models& models, const AnswerOptions& options, CallPtr call,
                  const Request& request, OutputsOf outputs, const char* method,
                  Tell tell, Done<Response> done) {
  ExampleRun run;
  Tensor examples;
  const Status s = Guarded("a request", [&]() -> Status {
    HR_ASSIGN_OR_RETURN(Target target,
                        FindTarget(models, request.has_model_spec(),
                                   request.model_spec(), &NoExampleSignature));
    HR_RETURN_IF_ERROR(
        PrepareRun(std::move(target), outputs, method, options, &run));
    const SandboxScope limit(call->LimitedTo(options.max_request_memory_bytes));
    HR_ASSIGN_OR_RETURN(examples, ExamplesOf(request.input()));
    return OkStatus();
  });
  if (!s.ok()) return done(s);
  Answer<Response>(std::move(run), std::move(call), std::move(examples), tell,
                   std::move(done));
}

// --- Several signatures over the same examples, one after the other.

Status NoTaskSignature(const std::string& key) {
  return InvalidArgument("Requested signature not found in model graph: ", key);
}

struct Tasks : std::enable_shared_from_this<Tasks> {
  CallPtr call;
  Tensor examples;
  std::vector<ExampleRun> runs;
  std::vector<bool> classifies;  // each of them
  MultiInferenceResponse response;
  Done<MultiInferenceResponse> done;

  Status Tell(size_t i, const Tensors& outputs) {
    const ExampleRun& run = runs[i];
    auto* result = response.add_results();
    SetSpec(run.target, result->mutable_model_spec());
    const int64_t n = examples.num_elements();
    return classifies[i]
               ? ClassifyResult(*run.target.signature, run.places, outputs, n,
                                result->mutable_classification_result())
               : RegressResult(outputs, n, result->mutable_regression_result());
  }
  void RunFrom(size_t i) {
    if (i == runs.size()) return done(std::move(response));
    runs[i].runner->Run(
        call, {examples},
        [self = shared_from_this(), i](StatusOr<Tensors> outputs) {
          Status s = outputs.status();
          if (s.ok()) {
            s = Guarded("a response", [&] { return self->Tell(i, *outputs); });
          }
          if (!s.ok()) return self->done(s);
          self->RunFrom(i + 1);
        });
  }
};

Status AddTask(const InferenceTask& task, const ServablePtr& servable,
               const AnswerOptions& options, std::set<StringView>* seen,
               Tasks* tasks) {
  const ModelSpec& spec = task.model_spec();
  if (spec.name() != servable->id().name) {
    return InvalidArgument(
        "All ModelSpecs in a MultiInferenceRequest must access the same model "
        "name.");
  }
  Target target{servable, servable->signature(spec.signature_name())};
  const std::string key =
      spec.signature_name().empty() ? kDefaultSignature : spec.signature_name();
  if (target.signature == nullptr) return NoTaskSignature(key);
  if (!seen->insert(target.signature->key).second) {
    return InvalidArgument("Duplicate evaluation of signature: ", key);
  }
  const bool classifies = task.method_name() == kClassifyMethod;
  if (!classifies && task.method_name() != kRegressMethod) {
    return Unimplemented("Unsupported signature method_name: ",
                         task.method_name());
  }
  tasks->classifies.push_back(classifies);
  return PrepareRun(std::move(target),
                    classifies ? &ClassifyOutputs : &RegressOutputs,
                    classifies ? kClassifyMethod : kRegressMethod, options,
                    &tasks->runs.emplace_back());
}

Status PrepareTasks(Models& models, const AnswerOptions& options,
                    const MultiInferenceRequest& request, Tasks* tasks) {
  if (request.tasks().empty()) {
    return InvalidArgument("Inference request must have at least one task");
  }
  if (!request.tasks(0).has_model_spec()) {
    return InvalidArgument("Missing ModelSpec");
  }
  HR_ASSIGN_OR_RETURN(const ServablePtr servable,
                      models.Find(request.tasks(0).model_spec()));
  std::set<StringView> seen;
  for (const InferenceTask& task : request.tasks()) {
    HR_RETURN_IF_ERROR(AddTask(task, servable, options, &seen, tasks));
  }
  const SandboxScope limit(
      tasks->call->LimitedTo(options.max_request_memory_bytes));
  HR_ASSIGN_OR_RETURN(tasks->examples, ExamplesOf(request.input()));
  return OkStatus();
}

}  // namespace

void Classify(Models& models, const AnswerOptions& options, CallPtr call,
              const ClassificationRequest& request,
              Done<ClassificationResponse> done) {
  OneSignature<ClassificationRequest, ClassificationResponse>(
      models, options, std::move(call), request, &ClassifyOutputs,
      kClassifyMethod, &TellClasses, std::move(done));
}

void Regress(Models& models, const AnswerOptions& options, CallPtr call,
             const RegressionRequest& request, Done<RegressionResponse> done) {
  OneSignature<RegressionRequest, RegressionResponse>(
      models, options, std::move(call), request, &RegressOutputs,
      kRegressMethod, &TellValues, std::move(done));
}

void MultiInference(Models& models, const AnswerOptions& options, CallPtr call,
                    const MultiInferenceRequest& request,
                    Done<MultiInferenceResponse> done) {
  auto tasks = std::make_shared<Tasks>();
  tasks->call = std::move(call);
  tasks->done = std::move(done);
  const Status s = Guarded("a request", [&] {
    return PrepareTasks(models, options, request, tasks.get());
  });
  if (!s.ok()) return tasks->done(s);
  tasks->RunFrom(0);
}

}  // namespace headrace::serving
