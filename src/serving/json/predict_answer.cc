#include "serving/json/predict_answer.h"

#include "absl/strings/match.h"
#include "serving/json/element_writer.h"

namespace headrace::serving {
namespace {

// A guess of the text of one element, for the memory to begin with.
constexpr size_t kBytesOfElement = 12;

// Writes parts of a tensor.
class TensorWriter {
 public:
  TensorWriter(const Argument& argument, const Tensor& tensor)
      : tensor_(tensor),
        base64_(tensor.dtype() == DType::kString &&
                absl::EndsWith(argument.name, "_bytes")) {}

  Status CheckType() const {
    if (DispatchDType(tensor_.dtype(), WrittenTypes(), [](auto) {})) {
      return OkStatus();
    }
    return InvalidArgument("Failed to write JSON value for tensor type: ",
                           DTypeName(tensor_.dtype()));
  }
  void AppendAll(std::string* out) const { Append(0, 0, out); }
  void AppendRow(int64_t row, std::string* out) const {
    Append(1, row * tensor_.shape().Product(1, tensor_.rank()), out);
  }

 private:
  // The values of dimensions `level` and further, from element `begin` on.
  void Append(int level, int64_t begin, std::string* out) const {
    DispatchDType(tensor_.dtype(), WrittenTypes(), [&](auto tag) {
      AppendList(tensor_.data<typename decltype(tag)::type>() + begin, level,
                 out);
    });
  }
  // A shape has 254 dimensions at most: so deep this goes. Gives what comes
  // after the elements written.
  template <typename T>
  const T* AppendList(const T* at, int level, std::string* out) const {
    if (level == tensor_.rank()) {
      AppendElement(*at, base64_, out);
      return at + 1;
    }
    out->push_back('[');
    for (int64_t i = 0; i < tensor_.dim(level); ++i) {
      if (i > 0) out->append(", ");
      at = AppendList(at, level + 1, out);
    }
    out->push_back(']');
    return at;
  }

  const Tensor& tensor_;
  const bool base64_;
};

Status CheckRows(absl::Span<const Argument> arguments, const Tensors& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].rank() == 0) {
      return InvalidArgument("Tensor name: ", arguments[i].name,
                             " has no shape information ");
    }
    if (tensors[i].dim(0) != tensors[0].dim(0)) {
      return InvalidArgument(
          "Tensor name: ", arguments[i].name,
          " has inconsistent batch size: ", tensors[i].dim(0),
          " expecting: ", tensors[0].dim(0));
    }
  }
  return OkStatus();
}

// One object a row, with a member for each output.
void AppendObjects(absl::Span<const Argument> arguments, int64_t rows,
                   const std::vector<TensorWriter>& writers, std::string* out) {
  for (int64_t row = 0; row < rows; ++row) {
    out->append(row == 0 ? "\n        {" : ",\n        {");
    for (size_t i = 0; i < writers.size(); ++i) {
      out->append(i == 0 ? "\n            " : ",\n            ");
      AppendJsonString(arguments[i].name, out);
      out->append(": ");
      writers[i].AppendRow(row, out);
    }
    out->append("\n        }");
  }
}

void AppendRows(absl::Span<const Argument> arguments, const Tensors& tensors,
                const std::vector<TensorWriter>& writers, std::string* out) {
  const int64_t rows = tensors.empty() ? 0 : tensors[0].dim(0);
  out->append("{\n    \"predictions\": [");
  if (writers.size() == 1) {
    for (int64_t row = 0; row < rows; ++row) {
      if (row > 0) out->append(", ");
      writers[0].AppendRow(row, out);
    }
  } else {
    AppendObjects(arguments, rows, writers, out);
  }
  out->append("\n    ]\n}");
}

void AppendColumns(absl::Span<const Argument> arguments,
                   const std::vector<TensorWriter>& writers, std::string* out) {
  out->append("{\n    \"outputs\": ");
  if (writers.size() == 1) {
    writers[0].AppendAll(out);
  } else {
    out->push_back('{');
    for (size_t i = 0; i < writers.size(); ++i) {
      out->append(i == 0 ? "\n        " : ",\n        ");
      AppendJsonString(arguments[i].name, out);
      out->append(": ");
      writers[i].AppendAll(out);
    }
    out->append("\n    }");
  }
  out->append("\n}");
}

}  // namespace

StatusOr<std::string> WritePredictAnswer(PredictFormat format,
                                         absl::Span<const Argument> arguments,
                                         const Tensors& tensors) {
  std::vector<TensorWriter> writers;
  size_t elements = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    writers.emplace_back(arguments[i], tensors[i]);
    HR_RETURN_IF_ERROR(writers.back().CheckType());
    elements += tensors[i].num_elements();
  }
  std::string out;
  out.reserve(64 + elements * kBytesOfElement);
  if (format == PredictFormat::kRows) {
    HR_RETURN_IF_ERROR(CheckRows(arguments, tensors));
    AppendRows(arguments, tensors, writers, &out);
  } else {
    AppendColumns(arguments, writers, &out);
  }
  return out;
}

}  // namespace headrace::serving
