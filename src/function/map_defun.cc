// MapDefun: a function of the rows of tensors, row by row.
#include "function/callee.h"
#include "op/op.h"

namespace headrace {
namespace {

class MapDefun : public Kernel {
 public:
  explicit MapDefun(const ResolvedOp& op)
      : f_(op.attr<FuncRef>("f")),
        shapes_(op.attr<std::vector<Shape>>("output_shapes")) {}
  bool own_outputs() const override { return true; }

  Status Run(KernelContext& c) override {
    const ArgRange args = c.op().input_range("arguments");
    HR_ASSIGN_OR_RETURN(const int64_t rows, RowsOf(c, args));
    HR_ASSIGN_OR_RETURN(BoundFunction * f, f_.Get(c.services()));
    if (f->num_inputs() != c.num_inputs() ||
        f->num_outputs() != c.num_outputs()) {
      return InvalidArgument("MapDefun calls its function with ",
                             c.num_inputs(), " arguments for ", c.num_outputs(),
                             " results; it has ", f->num_inputs(), " and ",
                             f->num_outputs());
    }
    HR_ASSIGN_OR_RETURN(auto run, f->Begin(c.services()));
    std::vector<Tensor> given, results;
    for (int64_t row = 0; row < rows; ++row) {
      HR_RETURN_IF_ERROR(c.CheckCancelled());
      given.clear();
      for (int i = 0; i < c.num_inputs(); ++i) {
        const Tensor& t = c.input(i);
        if (i < args.begin || i >= args.end) {
          given.push_back(t);
          continue;
        }
        const Shape item = t.shape().Sub(1, t.rank());
        // A copy: rows may not be aligned as tensors are.
        HR_ASSIGN_OR_RETURN(Tensor own,
                            t.Rows(row, row + 1).WithShape(item).Clone());
        given.push_back(std::move(own));
      }
      results.clear();
      HR_RETURN_IF_ERROR(run->Run(absl::MakeSpan(given), &results));
      HR_RETURN_IF_ERROR(PutRow(c, row, rows, results));
    }
    return rows > 0 ? OkStatus() : SetEmpty(c);
  }

 private:
  static StatusOr<int64_t> RowsOf(const KernelContext& c,
                                  const ArgRange& args) {
    int64_t rows = -1;
    for (int i = args.begin; i < args.end; ++i) {
      const Tensor& t = c.input(i);
      if (t.rank() == 0) {
        return InvalidArgument("All inputs must have rank at least 1. Input ",
                               i, " has a rank of 0.");
      }
      if (rows >= 0 && t.dim(0) != rows) {
        return InvalidArgument(
            "All inputs must have the same dimension 0. Input ", i,
            " has leading dimension ", t.dim(0),
            ", while all previous inputs have leading dimension ", rows);
      }
      rows = t.dim(0);
    }
    return rows;
  }

  // The first row says what shape all have, where the attribute does not.
  Status PutRow(KernelContext& c, int64_t row, int64_t rows,
                const std::vector<Tensor>& results) const {
    for (int i = 0; i < c.num_outputs(); ++i) {
      const Tensor& t = results[i];
      if (t.dtype() != c.op().output_types()[i]) {
        return InvalidArgument(
            "Mismatch in function return type and expected "
            "output type for output: ",
            i);
      }
      if (!shapes_[i].CompatibleWith(t.shape())) {
        return InvalidArgument("Mismatch in function retval shape, ", t.shape(),
                               ", and expected output shape, ", shapes_[i],
                               ".");
      }
      if (row == 0) {
        Shape all = t.shape();
        all.InsertDim(0, rows);
        HR_RETURN_IF_ERROR(Shape::Make(all.dims()).status());
        HR_RETURN_IF_ERROR(c.Allocate(i, all));
      } else if (c.output(i).shape().Sub(1, t.rank() + 1) != t.shape() ||
                 c.output(i).rank() != t.rank() + 1) {
        return InvalidArgument("Mismatch in function retval shape, ", t.shape(),
                               ", and that of the first row, ",
                               c.output(i).shape());
      }
      Tensor place = c.output(i).Rows(row, row + 1).WithShape(t.shape());
      CopyElements(t, place);
    }
    return OkStatus();
  }

  Status SetEmpty(KernelContext& c) const {
    for (int i = 0; i < c.num_outputs(); ++i) {
      if (!shapes_[i].fully_known()) {
        return InvalidArgument("MapDefun of no rows: output ", i,
                               " has a shape that is not known, ", shapes_[i]);
      }
      Shape none = shapes_[i];
      none.InsertDim(0, 0);
      HR_RETURN_IF_ERROR(c.Allocate(i, none));
    }
    return OkStatus();
  }

  Callee f_;
  const std::vector<Shape> shapes_;
};

Status MapDefunShape(ShapeContext& c) {
  const auto& shapes = c.op().attr<std::vector<Shape>>("output_shapes");
  if (static_cast<int>(shapes.size()) != c.num_outputs()) {
    return InvalidArgument(
        "`output_shapes` must be the same length as "
        "`output_types` (",
        shapes.size(), " vs. ", c.num_outputs(), ")");
  }
  int64_t rows = -1;
  const ArgRange args = c.op().input_range("arguments");
  for (int i = args.begin; i < args.end; ++i) {
    const Shape& s = c.input(i);
    if (!s.known_rank()) continue;
    if (s.rank() == 0) {
      return InvalidArgument("All inputs must have rank at least 1. Input ", i,
                             " has a rank of 0.");
    }
    if (rows >= 0 && s[0] >= 0 && s[0] != rows) {
      return InvalidArgument(
          "All inputs must have the same dimension 0. Input ", i,
          " has leading dimension ", s[0],
          ", while all previous inputs have leading dimension ", rows);
    }
    if (s[0] >= 0) rows = s[0];
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    if (!shapes[i].known_rank()) continue;
    Shape s = shapes[i];
    s.InsertDim(0, rows);
    c.set_output(i, std::move(s));
  }
  return OkStatus();
}

HR_OP(MapDefun)
    .Input("arguments: Targuments")
    .Input("captured_inputs: Tcaptured")
    .Output("output: output_types")
    .Attr("Targuments: list(type) >= 1")
    .Attr("Tcaptured: list(type) >= 0 = []")
    .Attr("output_types: list(type) >= 1")
    .Attr("output_shapes: list(shape) >= 1")
    .Attr("f: func")
    .Attr("max_intra_op_parallelism: int = 1")
    .Doc("A function of the rows of tensors, its results stacked.")
    .Shape(MapDefunShape)
    .Cpu(Bind<MapDefun>);

}  // namespace
}  // namespace headrace
