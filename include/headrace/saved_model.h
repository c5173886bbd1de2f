// SavedModels: models that Python, or TensorFlow, saved, called without either.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/safe_mode.h"
#include "headrace/variable.h"

namespace headrace::tf {

struct LoadOptions {
  // Which graph, where the model has several; empty: the only one.
  std::vector<std::string> tags;
  // Variables that the checkpoint lacks stay without a value.
  bool allow_partial_checkpoint = false;
  // What the model may do and use, where it is a stranger's.
  std::optional<SafeMode> safe_mode;
};

using NamedTensors = std::map<std::string, Tensor>;

// A model in a folder, with its variables, tables and assets:
//
//   auto model = tf::SavedModel::Load("folder");
//   auto out = model.signature("serving_default")({{"x", x}});
//   out.at("output_0")
//
// Copies share it. What it has made lives as long as one of them, or one of its
// signatures. Signatures may be called by several threads.
//
// Models of TensorFlow 1 load too: their variables are restored, what
// initializes them has run, and their signatures run parts of their graph.
class HR_API SavedModel {
 public:
  // A function of named tensors. Gradients flow through to the model's
  // variables.
  class HR_API Signature {
   public:
    struct Argument {
      std::string name;
      DType dtype;
      TensorShape shape;
    };
    const std::vector<Argument>& inputs() const;   // by name
    const std::vector<Argument>& outputs() const;  // by name
    // Throws kInvalidArgument for names that are missing or that it does not
    // take, for other dtypes, and the Error of the first op that fails.
    NamedTensors operator()(const NamedTensors& inputs) const;

   private:
    friend class SavedModel;
    struct State;
    std::shared_ptr<const State> state_;
  };

  // Throws kNotFound where there is no model in the folder or no graph has the
  // tags, kDataLoss where files are damaged, kUnimplemented, which lists them
  // all, for operations that are not there; and what a safe mode refuses.
  static SavedModel Load(const std::string& folder,
                         const LoadOptions& options = {});

  std::vector<std::string> signature_names() const;
  // Throws kNotFound.
  const Signature& signature(const std::string& name = "serving_default") const;

  // Variables by their paths: "layers/0/kernel" is the kernel of the first of
  // the root's layers. Those of models of TensorFlow 1 have their names there.
  // Throws kNotFound.
  Variable variable(const std::string& path) const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace headrace::tf
