// Operations on sets, the last dimension of dense or sparse tensors:
// DenseToDenseSetOperation and kin, SetSize.
#include <algorithm>
#include <iterator>
#include <type_traits>

#include "op/op.h"
#include "ops/sparse/sparse_input.h"

namespace headrace {
namespace {

enum class SetKind { kAMinusB, kBMinusA, kIntersection, kUnion };

StatusOr<SetKind> KindOf(const ResolvedOp& op) {
  const std::string& name = op.string_attr("set_operation");
  if (name == "a-b") return SetKind::kAMinusB;
  if (name == "b-a") return SetKind::kBMinusA;
  if (name == "intersection") return SetKind::kIntersection;
  if (name == "union") return SetKind::kUnion;
  return InvalidArgument("Invalid set_operation ", name, ".");
}

// A set: its values in order, each once.
template <typename T>
using SetOf = std::vector<T>;

// Integers that lie close together, by marks. False where they do not.
template <typename T>
bool MarkSet(const T* values, int64_t n, SetOf<T>* set) {
  if constexpr (std::is_integral_v<T>) {
    if (n == 0) return false;
    const auto [low, high] = std::minmax_element(values, values + n);
    // Unsigned: the distance from the lowest int64 to the highest fits.
    const uint64_t width =
        static_cast<uint64_t>(*high) - static_cast<uint64_t>(*low);
    // A byte of marks for each place is soon gone through; above that sorting n
    // values is the smaller work.
    if (width > 4 * static_cast<uint64_t>(n)) return false;
    const T first = *low;
    std::vector<uint8_t> marks(width + 1);
    for (int64_t i = 0; i < n; ++i) {
      marks[static_cast<uint64_t>(values[i]) - static_cast<uint64_t>(first)] =
          1;
    }
    for (uint64_t i = 0; i <= width; ++i) {
      if (marks[i]) {
        set->push_back(static_cast<T>(static_cast<uint64_t>(first) + i));
      }
    }
    return true;
  } else {
    return false;
  }
}
template <typename T>
SetOf<T> MakeSet(const T* values, int64_t n) {
  SetOf<T> set;
  if (MarkSet(values, n, &set)) return set;
  set.assign(values, values + n);
  std::sort(set.begin(), set.end());
  set.erase(std::unique(set.begin(), set.end()), set.end());
  return set;
}

// The sets of one operand: `groups` has one a row, in row-major order.
template <typename T>
struct Sets {
  std::vector<int64_t> group_dims;
  std::vector<SetOf<T>> groups;
};

Status CheckGroups(const std::vector<int64_t>& dims, int64_t* n) {
  *n = 1;
  for (int64_t d : dims) {
    // A sparse shape may claim any number of groups, and each takes memory even
    // when it is empty.
    if (d < 0 || __builtin_mul_overflow(*n, d, n) || *n > int64_t{1} << 28) {
      return InvalidArgument("sets of group shape [", JoinInts(dims),
                             "] are too many");
    }
  }
  return OkStatus();
}

template <typename T>
StatusOr<Sets<T>> DenseSets(const Tensor& t) {
  if (t.rank() < 2) {
    return InvalidArgument("Shape ", t.shape(), " has rank ", t.rank(), " < 2");
  }
  Sets<T> out;
  for (int d = 0; d + 1 < t.rank(); ++d) out.group_dims.push_back(t.dim(d));
  int64_t n;
  HR_RETURN_IF_ERROR(CheckGroups(out.group_dims, &n));
  out.groups.resize(n);
  const int64_t width = t.dim(t.rank() - 1);
  for (int64_t g = 0; g < n; ++g) {
    out.groups[g] = MakeSet(t.data<T>() + g * width, width);
  }
  return out;
}

// Of the kernel's inputs from `first`.
template <typename T>
StatusOr<Sets<T>> SparseSets(const KernelContext& c, int first) {
  HR_ASSIGN_OR_RETURN(const SparseInput s, SparseInputAt(c, first));
  if (s.rank < 2) {
    return InvalidArgument("Invalid rank ", s.rank, ".");
  }
  const bool validate = c.op().bool_attr("validate_indices");
  // Inside in any case: places number the groups below.
  HR_RETURN_IF_ERROR(validate ? CheckOrdered(s) : CheckInside(s));
  Sets<T> out;
  out.group_dims.assign(s.dims.begin(), s.dims.end() - 1);
  int64_t n;
  HR_RETURN_IF_ERROR(CheckGroups(out.group_dims, &n));
  out.groups.resize(n);
  for (int64_t i = 0; i < s.count; ++i) {
    int64_t group = 0;
    for (int d = 0; d + 1 < s.rank; ++d) {
      group = group * out.group_dims[d] + s.row(i)[d];
    }
    out.groups[group].push_back(s.data<T>()[i]);
  }
  for (SetOf<T>& g : out.groups) {
    g = MakeSet(g.data(), static_cast<int64_t>(g.size()));
  }
  return out;
}

template <typename T>
SetOf<T> Combine(SetKind kind, const SetOf<T>& a, const SetOf<T>& b) {
  SetOf<T> out;
  auto to = std::back_inserter(out);
  switch (kind) {
    case SetKind::kAMinusB:
      std::set_difference(a.begin(), a.end(), b.begin(), b.end(), to);
      break;
    case SetKind::kBMinusA:
      std::set_difference(b.begin(), b.end(), a.begin(), a.end(), to);
      break;
    case SetKind::kIntersection:
      std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), to);
      break;
    case SetKind::kUnion:
      std::set_union(a.begin(), a.end(), b.begin(), b.end(), to);
      break;
  }
  return out;
}

// The sets as a sparse tensor, values in order.
template <typename T>
Status SetResult(KernelContext& c, const Sets<T>& sets) {
  int64_t total = 0, widest = 0;
  for (const auto& s : sets.groups) {
    total += s.size();
    widest = std::max<int64_t>(widest, s.size());
  }
  std::vector<int64_t> dims = sets.group_dims;
  dims.push_back(widest);
  const int64_t rank = static_cast<int64_t>(dims.size());
  HR_RETURN_IF_ERROR(AllocateSparse(c, 0, total, dims));
  int64_t at = 0;
  for (size_t g = 0; g < sets.groups.size(); ++g) {
    int64_t column = 0;
    for (const T& value : sets.groups[g]) {
      int64_t* index = c.out<int64_t>(0) + at * rank;
      int64_t left = static_cast<int64_t>(g);
      for (int64_t d = rank - 1; d-- > 0;) {
        index[d] = left % sets.group_dims[d];
        left /= sets.group_dims[d];
      }
      index[rank - 1] = column++;
      c.out<T>(1)[at++] = value;
    }
  }
  return OkStatus();
}

// Which operands are sparse.
enum class Operands { kDenseDense, kDenseSparse, kSparseSparse };

template <typename T, Operands kind>
Status Operate(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const SetKind operation, KindOf(c.op()));
  const bool sparse_a = kind == Operands::kSparseSparse;
  const bool sparse_b = kind != Operands::kDenseDense;
  const int second = sparse_a ? 3 : 1;
  HR_ASSIGN_OR_RETURN(
      Sets<T> a, sparse_a ? SparseSets<T>(c, 0) : DenseSets<T>(c.input(0)));
  HR_ASSIGN_OR_RETURN(Sets<T> b, sparse_b ? SparseSets<T>(c, second)
                                          : DenseSets<T>(c.input(second)));
  if (a.group_dims != b.group_dims) {
    return InvalidArgument("Mismatched shapes [", JoinInts(a.group_dims),
                           "] vs [", JoinInts(b.group_dims), "]");
  }
  for (size_t g = 0; g < a.groups.size(); ++g) {
    a.groups[g] = Combine(operation, a.groups[g], b.groups[g]);
  }
  return SetResult(c, a);
}

template <typename T>
Status Size(KernelContext& c) {
  if (c.input(2).rank() != 1)
    return InvalidArgument("Shape must be a 1D tensor.");
  HR_ASSIGN_OR_RETURN(const Sets<T> sets, SparseSets<T>(c, 0));
  HR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(sets.group_dims));
  HR_RETURN_IF_ERROR(c.Allocate(0, shape));
  for (size_t g = 0; g < sets.groups.size(); ++g) {
    c.out<int32_t>(0)[g] = static_cast<int32_t>(sets.groups[g].size());
  }
  return OkStatus();
}

// Run<T> for the dtype of the values, input `at`.
template <template <typename> class Run, int at>
Status ForValues(KernelContext& c) {
  switch (c.input(at).dtype()) {
    case DType::kInt8:
      return Run<int8_t>::Call(c);
    case DType::kInt16:
      return Run<int16_t>::Call(c);
    case DType::kInt32:
      return Run<int32_t>::Call(c);
    case DType::kInt64:
      return Run<int64_t>::Call(c);
    case DType::kUint8:
      return Run<uint8_t>::Call(c);
    case DType::kUint16:
      return Run<uint16_t>::Call(c);
    case DType::kString:
      return Run<std::string>::Call(c);
    default:
      return InvalidArgument("sets of ", DTypeName(c.input(at).dtype()),
                             " are not supported");
  }
}
template <typename T>
struct DenseDense {
  static Status Call(KernelContext& c) {
    return Operate<T, Operands::kDenseDense>(c);
  }
};
template <typename T>
struct DenseSparse {
  static Status Call(KernelContext& c) {
    return Operate<T, Operands::kDenseSparse>(c);
  }
};
template <typename T>
struct SparseSparse {
  static Status Call(KernelContext& c) {
    return Operate<T, Operands::kSparseSparse>(c);
  }
};
template <typename T>
struct SizeOf {
  static Status Call(KernelContext& c) { return Size<T>(c); }
};

// The rank of a set operation's operands, as far as one of them tells.
int64_t RankOfSets(const ShapeContext& c) {
  const std::string& op = c.op().name();
  // By the names: DenseToDense..., DenseToSparse..., SparseToSparse...
  const bool dense_first = op[0] == 'D', dense_second = op[7] == 'D';
  if (dense_first && c.input(0).known_rank()) return c.input(0).rank();
  if (dense_second && c.input(1).known_rank()) return c.input(1).rank();
  for (int i : {2, 3, 5}) {  // where the shape of a sparse one may be
    const bool is_shape = dense_first ? i == 3 : i != 3;
    if (dense_second || !is_shape || i >= c.num_inputs()) continue;
    const Shape& shape = c.input(i);
    if (shape.known_rank() && shape.rank() == 1 && shape[0] >= 0) {
      return shape[0];
    }
  }
  return Shape::kUnknown;
}

// How many dimensions the sparse operand has whose shape is input `i`.
int64_t RankOfSparse(const ShapeContext& c, int i) {
  const Shape& shape = c.input(i);
  const bool known = shape.known_rank() && shape.rank() == 1;
  return known ? shape[0] : Shape::kUnknown;
}

Status CheckDense(ShapeContext& c, int i) {
  const Shape& s = c.input(i);
  if (!s.known_rank() || s.rank() >= 2) return OkStatus();
  return c.Refuse(RankIsLess(2, s.rank()),
                  InvalidArgument("Shape ", s, " has rank ", s.rank(), " < 2"));
}

Status Mismatched() { return InvalidArgument("Mismatched shapes of sets"); }

// Two dense operands have the same sizes but for the last.
Status CheckAlike(ShapeContext& c) {
  Shape a = c.input(0), b = c.input(1);
  if (!a.known_rank() || !b.known_rank()) return OkStatus();
  if (a.rank() != b.rank())
    return c.Refuse(RankIsNot(a.rank(), b.rank()), Mismatched());
  a.RemoveDim(a.rank() - 1);
  b.RemoveDim(b.rank() - 1);
  if (a.CompatibleWith(b)) return OkStatus();
  return c.Refuse(NotMerged(a, b), Mismatched());
}

// What is known of the operands in a graph fits; the kernel tells the sizes of
// values.
Status CheckOperands(ShapeContext& c) {
  const std::string& op = c.op().name();
  const bool dense_first = op[0] == 'D', dense_second = op[7] == 'D';
  if (dense_first) HR_RETURN_IF_ERROR(CheckDense(c, 0));
  if (dense_second) {
    HR_RETURN_IF_ERROR(CheckDense(c, 1));
    return c.in_graph() ? CheckAlike(c) : OkStatus();
  }
  if (!c.in_graph()) return OkStatus();
  const Shape& first = c.input(0);
  const int64_t a = !dense_first         ? RankOfSparse(c, 2)
                    : first.known_rank() ? first.rank()
                                         : Shape::kUnknown;
  const int64_t b = RankOfSparse(c, dense_first ? 3 : 5);
  if (a < 0 || b < 0 || a == b) return OkStatus();
  return c.Refuse(DimensionIsNot(a, b), Mismatched());
}

Status ResultShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckOperands(c));
  SetSparseOutput(c, 0, static_cast<int>(RankOfSets(c)));
  return OkStatus();
}

constexpr const char* kTypes =
    "T: {int8, int16, int32, int64, uint8, uint16, string}";

HR_OP(DenseToDenseSetOperation)
    .Input("set1: T")
    .Input("set2: T")
    .Output("result_indices: int64")
    .Output("result_values: T")
    .Output("result_shape: int64")
    .Attr("set_operation: string")
    .Attr("validate_indices: bool = true")
    .Attr(kTypes)
    .Doc("The union, intersection or difference of the rows' sets.")
    .Shape(ResultShape)
    .NoGradient()
    .Cpu(ComputeOwn<ForValues<DenseDense, 0>>);

HR_OP(DenseToSparseSetOperation)
    .Input("set1: T")
    .Input("set2_indices: int64")
    .Input("set2_values: T")
    .Input("set2_shape: int64")
    .Output("result_indices: int64")
    .Output("result_values: T")
    .Output("result_shape: int64")
    .Attr("set_operation: string")
    .Attr("validate_indices: bool = true")
    .Attr(kTypes)
    .Doc("The same of a dense and a sparse tensor.")
    .Shape(ResultShape)
    .NoGradient()
    .Cpu(ComputeOwn<ForValues<DenseSparse, 0>>);

HR_OP(SparseToSparseSetOperation)
    .Input("set1_indices: int64")
    .Input("set1_values: T")
    .Input("set1_shape: int64")
    .Input("set2_indices: int64")
    .Input("set2_values: T")
    .Input("set2_shape: int64")
    .Output("result_indices: int64")
    .Output("result_values: T")
    .Output("result_shape: int64")
    .Attr("set_operation: string")
    .Attr("validate_indices: bool = true")
    .Attr(kTypes)
    .Doc("The same of two sparse tensors.")
    .Shape(ResultShape)
    .NoGradient()
    .Cpu(ComputeOwn<ForValues<SparseSparse, 1>>);

HR_OP(SetSize)
    .Input("set_indices: int64")
    .Input("set_values: T")
    .Input("set_shape: int64")
    .Output("size: int32")
    .Attr("validate_indices: bool = true")
    .Attr(kTypes)
    .Doc("How many different values each row of a sparse tensor holds.")
    .Shape(UnknownShape)
    .NoGradient()
    .Cpu(ComputeOwn<ForValues<SizeOf, 1>>);

}  // namespace
}  // namespace headrace
