// InplaceUpdate, InplaceAdd, InplaceSub: rows of x replaced or changed. The
// names are of older days: x itself stays as it is unless nobody else reads
// it.
#include <type_traits>

#include "op/op.h"
#include "ops/array/block_copy.h"

namespace headrace {
namespace {

Status InplaceRule(ShapeContext& c) {
  const Shape &x = c.input(0), &i = c.input(1), &v = c.input(2);
  c.set_output(0, x);
  if (i.known_rank() && i.rank() != 1) {
    return InvalidArgument("i must be a vector. ", i);
  }
  if (!x.known_rank() || !v.known_rank()) return OkStatus();
  if (x.rank() != v.rank() || x.rank() < 1) {
    return InvalidArgument("x and v shape doesn't match (ranks differ): ", x,
                           " vs. ", v);
  }
  for (int d = 1; d < x.rank(); ++d) {
    if (x[d] >= 0 && v[d] >= 0 && x[d] != v[d]) {
      return InvalidArgument("x and v shape doesn't match at index ", d, " : ",
                             x, " vs. ", v);
    }
  }
  if (i.known_rank() && i[0] >= 0 && v[0] >= 0 && i[0] != v[0]) {
    return InvalidArgument("i and x shape doesn't match at index 0: ", i,
                           " vs. ", v);
  }
  return OkStatus();
}

enum class Change { kUpdate, kAdd, kSub };

template <typename T>
void ChangeRow(Change change, const T* v, T* row, int64_t n) {
  // Integers wrap around on overflow, which only unsigned arithmetic defines.
  using U = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
  for (int64_t k = 0; k < n; ++k) {
    row[k] =
        change == Change::kAdd
            ? static_cast<T>(static_cast<U>(row[k]) + static_cast<U>(v[k]))
            : static_cast<T>(static_cast<U>(row[k]) - static_cast<U>(v[k]));
  }
}

// Rows count modulo their number, as upstream counts them.
template <Change change>
Status Inplace(KernelContext& c) {
  const Tensor &i = c.input(1), &v = c.input(2);
  Tensor& y = c.output(0);
  if (y.raw() != c.input(0).raw()) CopyElements(c.input(0), y);
  const int64_t rows = y.dim(0), run = y.shape().Product(1, y.rank());
  // Guards the remainder below from a division by zero.
  if (rows == 0 && i.num_elements() > 0) {
    return InvalidArgument("x has no rows to change");
  }
  for (int64_t k = 0; k < i.num_elements(); ++k) {
    // The remainder of C++ takes the sign of the row, so the second one brings
    // it into [0, rows).
    const int64_t row = (i.IntAt(k) % rows + rows) % rows;
    if (change == Change::kUpdate) {
      CopyRun(y.dtype(), At(v, k * run), At(y, row * run), run);
      continue;
    }
    if (!DispatchDType(y.dtype(), NumberTypes{}, [&](auto tag) {
          using T = typename decltype(tag)::type;
          ChangeRow(change, v.data<T>() + k * run, y.data<T>() + row * run,
                    run);
        })) {
      return InvalidArgument("Unsupported dtype: ", DTypeName(y.dtype()));
    }
  }
  return OkStatus();
}

template <Change kChange>
OpBuilder InplaceOp(const char* name, const char* doc) {
  OpBuilder b(name);
  b.Input("x: T")
      .Input("i: int32")
      .Input("v: T")
      .Output("y: T")
      .Attr("T: type")
      .Doc(doc)
      .Shape(InplaceRule)
      .InPlace({0})
      .Cpu(Compute<Inplace<kChange>>);
  return b;
}
[[maybe_unused]] const OpRegistrar kInplace[] = {
    InplaceOp<Change::kUpdate>("InplaceUpdate",
                               "x with rows i replaced by those of v."),
    InplaceOp<Change::kAdd>("InplaceAdd", "x with v added to rows i."),
    InplaceOp<Change::kSub>("InplaceSub", "x with v taken from rows i."),
};

}  // namespace
}  // namespace headrace
