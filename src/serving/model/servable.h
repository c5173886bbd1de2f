// A version of a model, loaded and ready for requests.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/mutex.h"
#include "base/sandbox.h"
#include "saved_model/loaded_model.h"
#include "serving/model/model_session.h"
#include "serving/model/runner.h"

namespace headrace::serving {

inline constexpr char kDefaultSignature[] = "serving_default";

struct ServableId {
  std::string name;
  int64_t version = 0;
};

// What a signature takes and gives, in the order of the names.
struct Argument {
  std::string name;
  DType dtype = DType::kInvalid;
  Shape shape = Shape::UnknownRank();
};

struct Signature {
  std::string key;
  std::vector<Argument> inputs, outputs;
  // As the file has it.
  const tensorflow::SignatureDef* def = nullptr;

  // The places of all outputs.
  std::vector<int> AllOutputs() const;

 private:
  friend class Servable;
  std::shared_ptr<ConcreteFunction> function;
  std::vector<int> function_inputs, function_outputs;  // places, of each
};

struct ServableOptions {
  Tags tags = {"serve"};
  // What the model is confined to; null: nothing.
  SandboxPtr sandbox;
  // Of the tensors of one request while it runs; 0: no limit.
  int64_t max_request_memory_bytes = 0;
  // Its graph is loaded for sessions, whatever wrote it.
  bool session = false;
  // Puts something between requests and the run, as batches; empty: nothing.
  std::function<RunnerPtr(RunnerPtr, const Signature&,
                          absl::Span<const int> outputs)>
      wrap;
};

// Thread-safe.
class Servable {
 public:
  // Runs nothing but what the model runs when it is loaded. Errors of
  // LoadedModel::Load.
  static StatusOr<std::shared_ptr<Servable>> Load(
      ServableId id, const std::string& folder, const ServableOptions& options);
  Servable(const Servable&) = delete;
  Servable& operator=(const Servable&) = delete;

  const ServableId& id() const { return id_; }
  const std::string& folder() const { return folder_; }
  const tensorflow::MetaGraphDef& meta_graph() const {
    return model_->meta_graph();
  }
  // Those that requests may name, by key.
  const std::map<std::string, Signature, std::less<>>& signatures() const {
    return signatures_;
  }
  // Of that key, or of kDefaultSignature where it is empty; null where there is
  // none.
  const Signature* signature(StringView key) const;

  // Null where the options do not say so.
  ModelSession* session() const { return session_.get(); }

  // Runs the outputs of those places (each once, in any order) of one of its
  // signatures. Made at first use; the runners of the sets of outputs that are
  // asked for most recently are kept.
  StatusOr<RunnerPtr> RunnerOf(const Signature& signature,
                               absl::Span<const int> outputs);

 private:
  Servable(ServableId id, std::string folder, const ServableOptions& options)
      : id_(std::move(id)), folder_(std::move(folder)), options_(options) {}
  Status AddSignatures();

  const ServableId id_;
  const std::string folder_;
  const ServableOptions options_;
  std::shared_ptr<LoadedModel> model_;
  std::map<std::string, Signature, std::less<>> signatures_;
  std::unique_ptr<ModelSession> session_;
  struct Kept {
    const Signature* signature;
    std::vector<int> outputs;
    RunnerPtr runner;
  };
  Mutex mutex_;
  std::vector<Kept> runners_ ABSL_GUARDED_BY(mutex_);  // the latest in front
};
using ServablePtr = std::shared_ptr<Servable>;

}  // namespace headrace::serving
