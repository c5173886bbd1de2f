// What a callable is given: from the command line and from files.
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "base/files/files.h"
#include "command/model/callable.h"
#include "command/text/json_example.h"
#include "command/text/json_value_tensor.h"
#include "command/text/npy.h"

namespace headrace::command {
namespace {

constexpr int64_t kMostZeros = int64_t{1} << 31;  // bytes that no file gives

StatusOr<std::string> ReadInput(const std::string& path) {
  std::string local;
  HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(path, &local));
  return ReadWholeFile(fs, local);
}

// NumPy's types are read as others of the same bytes, which the input is.
Tensor AsWanted(Tensor t, DType wanted) {
  const bool same_bytes = DTypeSize(t.dtype()) == DTypeSize(wanted) &&
                          IsPlain(t.dtype()) && IsPlain(wanted) &&
                          (IsQuantized(wanted) || DTypeSize(wanted) == 1 ||
                           wanted == DType::kBfloat16);
  if (t.dtype() == wanted || !same_bytes) return t;
  if (t.dtype() == DType::kBool || wanted == DType::kBool) return t;
  const Shape shape = t.shape();
  return t.WithType(wanted, shape);
}

StatusOr<Tensor> FromBytes(const std::string& bytes, DType dtype) {
  if (bytes.starts_with("\x93NUMPY")) {
    HR_ASSIGN_OR_RETURN(Tensor t, TensorFromNpy(bytes));
    return AsWanted(std::move(t), dtype);
  }
  HR_ASSIGN_OR_RETURN(const JsonValue value, ParseJson(bytes));
  return TensorFromJson(value, dtype);
}

StatusOr<Tensor> FromText(const std::string& text, DType dtype) {
  if (text.starts_with('@')) {
    HR_ASSIGN_OR_RETURN(const std::string bytes, ReadInput(text.substr(1)));
    return FromBytes(bytes, dtype);
  }
  if (absl::EndsWith(text, ".npy")) {
    HR_ASSIGN_OR_RETURN(const std::string bytes, ReadInput(text));
    HR_ASSIGN_OR_RETURN(Tensor t, TensorFromNpy(bytes));
    return AsWanted(std::move(t), dtype);
  }
  if (dtype == DType::kString && text.find_first_of("[{\"'") != 0) {
    return Tensor::Scalar<std::string>(text);
  }
  HR_ASSIGN_OR_RETURN(const JsonValue value, ParseJson(text));
  return TensorFromJson(value, dtype);
}

StatusOr<Tensor> FromExamples(const std::string& text) {
  std::string json = text;
  if (text.starts_with('@')) {
    HR_ASSIGN_OR_RETURN(json, ReadInput(text.substr(1)));
  }
  HR_ASSIGN_OR_RETURN(const JsonValue value, ParseJson(json));
  return ExamplesFromJson(value);
}

Status CheckInput(const Callable::Argument& a, const Tensor& t) {
  if (t.dtype() != a.dtype || !a.shape.CompatibleWith(t.shape())) {
    return InvalidArgument("expected ", DTypePythonName(a.dtype), " of shape ",
                           a.shape, ", got ", DTypePythonName(t.dtype()),
                           " of shape ", t.shape());
  }
  return OkStatus();
}

Status ForInput(const std::string& name, const Status& s) {
  return Status(s.code(), absl::StrCat("input ", name, ": ", s.message()));
}

StatusOr<Tensor> Zeros(const Callable::Argument& a, int64_t fill) {
  if (fill == 0) return InvalidArgument("it is not given");
  Shape shape = a.shape.known_rank() ? a.shape : Shape();
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] < 0) shape.set_dim(i, fill);
  }
  int64_t count;
  if (!CountElements(shape, &count) ||
      count > kMostZeros / static_cast<int64_t>(DTypeSize(a.dtype))) {
    return ResourceExhausted("zeros of shape ", shape, " would be too large");
  }
  if (!IsPlain(a.dtype) && a.dtype != DType::kString) {
    return InvalidArgument("a ", DTypePythonName(a.dtype), " cannot be given");
  }
  HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(a.dtype, shape));
  FillZero(t);
  return t;
}

// By name, what the file of --inputs says.
StatusOr<std::map<std::string, JsonValue>> FileInputs(const Arguments& args) {
  std::map<std::string, JsonValue> found;
  const std::optional<std::string> path = args.Get("inputs");
  if (!path) return found;
  HR_ASSIGN_OR_RETURN(const std::string text, ReadInput(*path));
  StatusOr<JsonValue> value = ParseJson(text);
  if (!value.ok()) {
    return Status(value.status().code(),
                  absl::StrCat(*path, ": ", value.status().message()));
  }
  if (value->kind != JsonValue::Kind::kObject) {
    return InvalidArgument(*path, ": expected an object of inputs by name");
  }
  for (size_t i = 0; i < value->keys.size(); ++i) {
    found[value->keys[i]] = std::move(value->items[i]);
  }
  return found;
}

// By name, what all options of one kind say.
StatusOr<std::map<std::string, std::string>> LineInputs(const Arguments& args,
                                                        const char* option) {
  std::map<std::string, std::string> found;
  for (const std::string& text : args.All(option)) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return UsageError(
          absl::StrCat("--", option, " needs NAME=VALUE, got ", text));
    }
    if (!found.emplace(text.substr(0, equals), text.substr(equals + 1))
             .second) {
      return UsageError(absl::StrCat("--", option, " gives ",
                                     text.substr(0, equals), " twice"));
    }
  }
  return found;
}

Status CheckNames(const Callable& callable, const auto& given) {
  for (const auto& [name, value] : given) {
    bool known = false;
    std::vector<std::string> names;
    for (const auto& a : callable.inputs()) {
      known = known || a.name == name;
      names.push_back(a.name);
    }
    if (!known) {
      return InvalidArgument("there is no input ", name,
                             ", the inputs are: ", absl::StrJoin(names, ", "));
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::vector<Tensor>> InputsOf(const Callable& callable,
                                       const Arguments& args, int64_t fill) {
  HR_ASSIGN_OR_RETURN(const auto from_file, FileInputs(args));
  HR_ASSIGN_OR_RETURN(const auto from_line, LineInputs(args, "input"));
  HR_ASSIGN_OR_RETURN(const auto examples, LineInputs(args, "input_examples"));
  HR_RETURN_IF_ERROR(CheckNames(callable, examples));
  HR_RETURN_IF_ERROR(CheckNames(callable, from_file));
  HR_RETURN_IF_ERROR(CheckNames(callable, from_line));
  std::vector<Tensor> inputs;
  for (const Callable::Argument& a : callable.inputs()) {
    const auto line = from_line.find(a.name);
    const auto file = from_file.find(a.name);
    const auto example = examples.find(a.name);
    if (example != examples.end() && line != from_line.end()) {
      return UsageError(absl::StrCat("input ", a.name, " is given twice"));
    }
    StatusOr<Tensor> t =
        example != examples.end() ? FromExamples(example->second)
        : line != from_line.end() ? FromText(line->second, a.dtype)
        : file != from_file.end() ? TensorFromJson(file->second, a.dtype)
                                  : Zeros(a, fill);
    if (!t.ok()) return ForInput(a.name, t.status());
    if (const Status s = CheckInput(a, *t); !s.ok()) return ForInput(a.name, s);
    inputs.push_back(*std::move(t));
  }
  return inputs;
}

}  // namespace headrace::command
