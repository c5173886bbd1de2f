// DecodeCSV: records of comma-separated fields (RFC 4180) as columns.
#include "formats/csv.h"
#include "op/op.h"
#include "op/vectorize.h"

namespace headrace {
namespace {

struct Format {
  CsvFormat csv;
  const std::string& missing;  // stands for an empty field
  std::vector<int64_t> columns;
};

StatusOr<Format> FormatOf(const ResolvedOp& op) {
  const std::string& delimiter = op.string_attr("field_delim");
  if (delimiter.size() != 1) {
    return InvalidArgument("field_delim should be only 1 char");
  }
  Format f{{delimiter[0], op.bool_attr("use_quote_delim")},
           op.string_attr("na_value"),
           op.attr<std::vector<int64_t>>("select_cols")};
  for (size_t i = 0; i < f.columns.size(); ++i) {
    if (f.columns[i] < 0 || (i > 0 && f.columns[i] <= f.columns[i - 1])) {
      return InvalidArgument(
          "select_cols should be strictly increasing indices of at least 0");
    }
  }
  if (!f.columns.empty() && f.columns.size() != op.output_types().size()) {
    return InvalidArgument("select_cols should match output size");
  }
  return f;
}

void* PlaceOf(Tensor& out, int64_t row) {
  return static_cast<char*>(out.raw()) + row * DTypeSize(out.dtype());
}

Status SetField(KernelContext& c, const Format& f, int column, int64_t row,
                std::string field) {
  Tensor& out = c.output(column);
  const Tensor& standard = c.input(column + 1);
  if (field.empty() || field == f.missing) {
    if (standard.num_elements() != 1) {
      return InvalidArgument("Field ", column, " is required but missing in ",
                             "record ", row, "!");
    }
    Tensor place = out.WithShape(Shape{out.num_elements()})
                       .Rows(row, row + 1)
                       .WithShape(Shape());
    CopyElements(standard.WithShape(Shape()), place);
    return OkStatus();
  }
  if (out.dtype() == DType::kString) {
    out.data<std::string>()[row] = std::move(field);
  } else if (!ParseCsvNumber(field, out.dtype(), PlaceOf(out, row))) {
    return InvalidArgument("Field ", column, " in record ", row,
                           " is not a valid ", DTypeName(out.dtype()), ": ",
                           field);
  }
  return OkStatus();
}

Status Decode(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const Format f, FormatOf(c.op()));
  const int columns = c.num_outputs();
  std::vector<std::string> fields;
  for (int64_t row = 0; row < c.input(0).num_elements(); ++row) {
    fields.clear();
    HR_RETURN_IF_ERROR(
        SplitCsvRecord(c.in<std::string>(0)[row], f.csv, &fields));
    const int64_t found = static_cast<int64_t>(fields.size());
    if (f.columns.empty() && found != columns) {
      return InvalidArgument("Expect ", columns, " fields but have ", found,
                             " in record ", row);
    }
    for (int i = 0; i < columns; ++i) {
      const int64_t at = f.columns.empty() ? i : f.columns[i];
      if (at >= found) {
        return InvalidArgument("Expect ", columns, " fields but have ", i,
                               " in record ", row);
      }
      HR_RETURN_IF_ERROR(SetField(c, f, i, row, std::move(fields[at])));
    }
  }
  return OkStatus();
}

Status DecodeShape(ShapeContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) {
    const Shape& s = c.input(i);
    if (!s.known_rank()) continue;
    if (s.rank() > 1 || (s.fully_known() && s.num_elements() > 1)) {
      return InvalidArgument(
          "There should only be 1 default per field but field ", i - 1,
          " has shape ", s);
    }
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(0));
  return OkStatus();
}

HR_OP(DecodeCSV)
    .Input("records: string")
    .Input("record_defaults: OUT_TYPE")
    .Output("output: OUT_TYPE")
    .Attr("OUT_TYPE: list({float, double, int32, int64, string}) >= 1")
    .Attr("field_delim: string = ','")
    .Attr("use_quote_delim: bool = true")
    .Attr("na_value: string = ''")
    .Attr("select_cols: list(int) = []")
    .Doc("Columns of records of separated fields.")
    .Shape(DecodeShape)
    .Vectorize(VectorizeFirst)
    .Cpu(Compute<Decode>);

}  // namespace
}  // namespace headrace
