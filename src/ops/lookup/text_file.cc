// InitializeTableFromTextFileV2: contents from the lines of a file.
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/files/files.h"
#include "op/op_like.h"
#include "op/reach.h"
#include "ops/lookup/table.h"

namespace headrace {
namespace {

constexpr int64_t kWholeLine = -2;
constexpr int64_t kLineNumber = -1;

// Element `at` of a vector as what `text` says.
Status Parse(StringView text, const Tensor& out, int64_t at) {
  bool ok = false;
  switch (out.dtype()) {
    case DType::kString:
      out.data<std::string>()[at] = std::string(text);
      return OkStatus();
    case DType::kInt32:
      ok = absl::SimpleAtoi(text, out.data<int32_t>() + at);
      break;
    case DType::kInt64:
      ok = absl::SimpleAtoi(text, out.data<int64_t>() + at);
      break;
    case DType::kFloat:
      ok = absl::SimpleAtof(text, out.data<float>() + at);
      break;
    case DType::kDouble:
      ok = absl::SimpleAtod(text, out.data<double>() + at);
      break;
    default:
      return InvalidArgument("Data type ", DTypeName(out.dtype()),
                             " not supported.");
  }
  if (ok) return OkStatus();
  return InvalidArgument("Field ", text, " in line ", at, " is not a valid ",
                         DTypeName(out.dtype()), ".");
}

struct Columns {
  int64_t key, value, offset;
  std::string delimiter;
};

Status Fill(StringView line, const Columns& columns, int64_t number,
            int64_t index, const Tensor& out) {
  if (index == kWholeLine) return Parse(line, out, number);
  if (index == kLineNumber) {
    if (out.dtype() != DType::kInt64) {
      return InvalidArgument(
          "Key index for line number requires dtype int64, "
          "got ",
          DTypeName(out.dtype()));
    }
    out.data<int64_t>()[number] = number + columns.offset;
    return OkStatus();
  }
  std::vector<StringView> fields = absl::StrSplit(line, columns.delimiter);
  if (index >= static_cast<int64_t>(fields.size())) {
    return InvalidArgument("Invalid number of columns in line ", number, " (",
                           line, "), expected at least ", index + 1, ", got ",
                           fields.size());
  }
  return Parse(fields[index], out, number);
}

Status FromTextFile(KernelContext& c) {
  const ResolvedOp& op = c.op();
  HR_ASSIGN_OR_RETURN(auto table, TableOf(c));
  if (c.input(1).num_elements() != 1) {
    return InvalidArgument("filename should be a single string, but got ",
                           c.input(1).shape());
  }
  const std::string& name = c.in<std::string>(1)[0];
  if (name.empty()) return InvalidArgument("filename cannot be empty.");
  std::string path;
  HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(name, &path));
  HR_ASSIGN_OR_RETURN(std::string text, ReadWholeFile(fs, path));
  std::vector<StringView> lines = absl::StrSplit(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  const int64_t wanted = op.int_attr("vocab_size");
  if (wanted > static_cast<int64_t>(lines.size())) {
    return InvalidArgument("Invalid vocab_size in ", name, ": expected ",
                           wanted, " but got ", lines.size());
  }
  if (wanted >= 0) lines.resize(wanted);
  const Columns columns{op.int_attr("key_index"), op.int_attr("value_index"),
                        op.int_attr("offset"), op.string_attr("delimiter")};
  const Shape shape{static_cast<int64_t>(lines.size())};
  HR_ASSIGN_OR_RETURN(Tensor keys, c.Temporary(table->key_dtype(), shape));
  HR_ASSIGN_OR_RETURN(Tensor values, c.Temporary(table->value_dtype(), shape));
  for (int64_t i = 0; i < shape[0]; ++i) {
    StringView line = lines[i];
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    HR_RETURN_IF_ERROR(Fill(line, columns, i, columns.key, keys));
    HR_RETURN_IF_ERROR(Fill(line, columns, i, columns.value, values));
  }
  return table->Import(keys, values);
}

HR_OP(InitializeTableFromTextFileV2)
    .Traits({kReadsFiles})
    .Input("table_handle: resource")
    .Input("filename: string")
    .Attr("key_index: int >= -2")
    .Attr("value_index: int >= -2")
    .Attr("vocab_size: int >= -1 = -1")
    .Attr("delimiter: string = '\t'")
    .Attr("offset: int = 0")
    .Doc("Gives a table its contents, a key and a value a line.")
    .Stateful()
    .Shape(NoOutputs)
    .NoGradient()
    .Cpu(Compute<FromTextFile>);

[[maybe_unused]] const bool kFromFileByReference =
    RegisterLike("InitializeTableFromTextFile", "InitializeTableFromTextFileV2",
                 ByReference);

}  // namespace
}  // namespace headrace
