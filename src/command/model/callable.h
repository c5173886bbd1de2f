// A signature of a SavedModel, or a graph between its placeholders and outputs,
// as something to call.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "command/arguments.h"
#include "command/source.h"
#include "tensor/tensor.h"

namespace headrace::command {

// The options that choose what is called: of run, bench and freeze.
inline constexpr OptionDef kSafeOption =
    OptionDef{"safe", 0, "",
              "Confine the model: no files but its own, no network, Python, "
              "processes or prints; 4 GiB, 60 seconds a call."}
        .Without("policy");
inline constexpr OptionDef kPolicyOption = {
    "policy", 0, "FILE", "Confine the model to the safety policy in FILE."};
inline constexpr OptionDef kTagSetOption =
    OptionDef{"tag_set", 0, "TAGS",
              "Of a SavedModel: the graph with these tags, between commas."}
        .Of(kModels);
inline constexpr OptionDef kSignatureOption =
    OptionDef{
        "signature_def", 0, "KEY",
        "Of a SavedModel: the signature (serving_default, or the only one)."}
        .Of(kModels);
inline constexpr OptionDef kOutputsOption =
    OptionDef{
        "outputs", 0, "NAMES",
        "Of a graph: what is computed, between commas (what no node reads)."}
        .Of(kGraphs);
// And those that give inputs.
inline constexpr OptionDef kInputOption = {
    "input", 'i', "NAME=VALUE",
    "An input: a .npy file, JSON such as [[1, 2]], @FILE with either, or text "
    "for a string.",
    true};
inline constexpr OptionDef kInputsOption = {
    "inputs", 0, "FILE", "A JSON file with an object of inputs by name."};

inline constexpr OptionDef kExamplesOption = {
    "input_examples", 0, "NAME=LIST",
    "An input of tf.train.Examples: [{\"age\": [22.0], \"name\": [\"x\"]}], "
    "or @FILE with such.",
    true};

class Callable {
 public:
  struct Argument {
    std::string name;
    DType dtype = DType::kInvalid;
    Shape shape = Shape::UnknownRank();
  };
  virtual ~Callable() = default;
  virtual const std::vector<Argument>& inputs() const = 0;
  virtual const std::vector<std::string>& outputs() const = 0;
  // One tensor an input; one an output.
  virtual Status Call(absl::Span<const Tensor> inputs,
                      std::vector<Tensor>* outputs) = 0;
};

// The signature that the options choose. NotFound where there is none of that
// key, InvalidArgument where several could be meant.
StatusOr<std::unique_ptr<Callable>> OpenCallable(const Source& source,
                                                 const Arguments& args);

// The key of the signature that is meant, of those that there are.
StatusOr<std::string> ChosenSignature(const Arguments& args,
                                      const std::vector<std::string>& keys,
                                      const Source& source);

// Inputs by the options, one each, checked against dtype and shape. Those that
// are not given are zeros with `fill` in place of unknown sizes, or, where
// `fill` is 0, InvalidArgument.
StatusOr<std::vector<Tensor>> InputsOf(const Callable& callable,
                                       const Arguments& args, int64_t fill);

}  // namespace headrace::command
