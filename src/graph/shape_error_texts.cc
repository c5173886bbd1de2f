// A graph's words for what shape rules refuse, by op.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "graph/shape_error.h"
#include "op/registry.h"

namespace headrace {
namespace {

using Said = ShapeRefusal;

Said Equal(int64_t a, int64_t b) {
  return {absl::StrCat("Dimensions must be equal, but are ", a, " and ", b)};
}
Said Exactly(int64_t must, int64_t is) {
  return {absl::StrCat("Dimension must be ", must, " but is ", is)};
}
Said Rank(int must, int is) {
  return {absl::StrCat("Shape must be rank ", must, " but is rank ", is)};
}
Said RankAtLeast(int64_t must, int is) {
  return {
      absl::StrCat("Shape must be at least rank ", must, " but is rank ", is)};
}
Said Divisible(int64_t by, int64_t is) {
  return {absl::StrCat("Dimension size must be evenly divisible by ", by,
                       " but is ", is)};
}
Said Looking(Said s, uint32_t values) {
  s.values = values;
  return s;
}
bool Differ(int64_t a, int64_t b) { return a >= 0 && b >= 0 && a != b; }

// The first two sizes, from the left, that do not go together.
Said Broadcast(const Shape& a, const Shape& b) {
  if (!a.known_rank() || !b.known_rank()) return {};
  const int rank = std::max(a.rank(), b.rank());
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    const int64_t da = ia < 0 ? 1 : a[ia], db = ib < 0 ? 1 : b[ib];
    if (Differ(da, db) && da != 1 && db != 1) return Equal(da, db);
  }
  return {};
}
Said Merge(const Shape& a, const Shape& b) {
  StatusOr<Shape> merged = MergeShapes(a, b);
  return merged.ok() ? Said{} : Said{std::string(merged.status().message())};
}

Said MatMul(const ShapeContext& c, const char* ta, const char* tb) {
  const Shape &a = c.input(0), &b = c.input(1);
  for (const Shape* s : {&a, &b}) {
    if (!s->known_rank()) return {};
    if (c.op().name() == "MatMul" && s->rank() != 2) return Rank(2, s->rank());
    if (s->rank() < 2) return RankAtLeast(2, s->rank());
  }
  const int64_t inner_a = a[a.rank() - (c.op().bool_attr(ta) ? 2 : 1)];
  const int64_t inner_b = b[b.rank() - (c.op().bool_attr(tb) ? 1 : 2)];
  Said batch = Broadcast(Shape(a.dims().subspan(0, a.rank() - 2)),
                         Shape(b.dims().subspan(0, b.rank() - 2)));
  return batch.text.empty() && Differ(inner_a, inner_b)
             ? Equal(inner_a, inner_b)
             : batch;
}
Said MatMulSaid(const ShapeContext& c, StringView) {
  return MatMul(c, "transpose_a", "transpose_b");
}
Said BatchMatMulSaid(const ShapeContext& c, StringView) {
  return MatMul(c, "adj_x", "adj_y");
}

Said ReshapeSaid(const ShapeContext& c, StringView) {
  if (c.input(1).known_rank() && c.input(1).rank() != 1) {
    return Rank(1, c.input(1).rank());
  }
  StatusOr<Shape> to = c.ShapeValue(1);
  if (!to.ok() || !to->known_rank() || !c.input(0).fully_known()) return {};
  const int64_t n = c.input(0).num_elements();
  int64_t known = 1;
  for (int64_t d : to->dims()) {
    if (d >= 0 && !MultiplyChecked(known, d, &known)) return {};
  }
  Said s = to->fully_known()
               ? Said{absl::StrCat("Cannot reshape a tensor with ", n,
                                   " elements to shape ", to->ToString(), " (",
                                   known, " elements)")}
               : Divisible(known, n);
  s.partial_shapes = 2;
  return s;
}

Said ConcatSaid(const ShapeContext& c, StringView) {
  const int last = c.num_inputs() - 1;
  const int rank = c.input(0).known_rank() ? c.input(0).rank() : -1;
  for (int i = 1; i < last; ++i) {
    const Shape& s = c.input(i);
    if (rank >= 0 && s.known_rank() && s.rank() != rank) {
      return Rank(rank, s.rank());
    }
  }
  absl::InlinedVector<int64_t, 8> axis;
  if (rank < 0 || !c.IntValues(last, &axis) || axis.size() != 1) return {};
  const uint32_t seen = last < 32 ? 1u << last : 0;
  const int64_t need = axis[0] < 0 ? -axis[0] : axis[0] + 1;
  if (need > rank) return Looking(RankAtLeast(need, rank), seen);
  const int at = static_cast<int>(axis[0] < 0 ? axis[0] + rank : axis[0]);
  for (int i = 1; i < last; ++i) {
    if (!c.input(i).known_rank()) continue;
    for (auto [begin, end] : {std::pair{0, at}, std::pair{at + 1, rank}}) {
      Said s = Merge(Shape(c.input(0).dims().subspan(begin, end - begin)),
                     Shape(c.input(i).dims().subspan(begin, end - begin)));
      if (!s.text.empty()) return Looking(std::move(s), seen);
    }
  }
  return {};
}

// All inputs alike: Pack, AddN.
Said MergeAllSaid(const ShapeContext& c, StringView) {
  Shape all = c.input(c.num_inputs() - 1);
  for (int i = c.num_inputs() - 2; i >= 0; --i) {
    StatusOr<Shape> merged = MergeShapes(c.input(i), all);
    if (!merged.ok()) {
      return {absl::StrCat(merged.status().message(), "\n\tFrom merging shape ",
                           i, " with other shapes.")};
    }
    all = *std::move(merged);
  }
  return {};
}

Said UnpackSaid(const ShapeContext& c, StringView) {
  const Shape& s = c.input(0);
  int64_t axis = c.op().int_attr("axis");
  if (!s.known_rank()) return {};
  if (axis < 0) axis += s.rank();
  if (axis < 0 || axis >= s.rank()) return {};
  return Exactly(c.op().int_attr("num"), s[static_cast<int>(axis)]);
}

Said SplitSaid(const ShapeContext& c, StringView) {
  absl::InlinedVector<int64_t, 8> axis;
  const Shape& s = c.input(1);
  if (!s.known_rank() || !c.IntValues(0, &axis) || axis.size() != 1) return {};
  const int rank = s.rank();
  if (axis[0] < -rank || axis[0] >= rank) {
    return {absl::StrCat("Dimension size, given by scalar input ", axis[0],
                         " must be in range [-", rank, ", ", rank, ")"),
            1};
  }
  const int at = static_cast<int>(axis[0] < 0 ? axis[0] + rank : axis[0]);
  Said said = Divisible(c.op().int_attr("num_split"), s[at]);
  said.text +=
      "\n\tNumber of ways to split should evenly divide the split dimension";
  return Looking(std::move(said), 1);
}

Said SplitVSaid(const ShapeContext& c, StringView) {
  absl::InlinedVector<int64_t, 8> sizes, axis;
  const Shape& s = c.input(0);
  if (!s.known_rank() || !c.IntValues(1, &sizes) || !c.IntValues(2, &axis) ||
      axis.size() != 1) {
    return {};
  }
  const int64_t at = axis[0] < 0 ? axis[0] + s.rank() : axis[0];
  if (at < 0 || at >= s.rank()) return {};
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] >= -1) continue;
    return {absl::StrCat("Split size at index ", i,
                         " must be >= 0. Got: ", sizes[i]),
            6};
  }
  if (std::count(sizes.begin(), sizes.end(), -1) > 1) {
    return {"size_splits can only have one -1", 6};
  }
  return {
      absl::StrCat("can't split axis of size ", s[static_cast<int>(at)],
                   " into pieces of size [", absl::StrJoin(sizes, ","), "]"),
      6};
}

// Of ops on matrices, or on diagonals: rank 2, or 1, at least.
Said MatrixSaid(const ShapeContext& c, StringView) {
  const bool set = absl::StartsWith(c.op().name(), "MatrixSetDiag");
  const bool from_diagonal = !set && !absl::StrContains(c.op().name(), "Part");
  const Shape& first = c.input(0);
  const int least = from_diagonal ? 1 : 2;
  if (first.known_rank() && first.rank() < least) {
    return RankAtLeast(least, first.rank());
  }
  const Shape& diagonal = c.input(set ? 1 : 0);
  return set && diagonal.known_rank() && diagonal.rank() < 1
             ? RankAtLeast(1, diagonal.rank())
             : Said{};
}

Said SqueezeSaid(const ShapeContext& c, StringView text) {
  if (!absl::StartsWith(text, "Tried to squeeze")) return {};
  const Shape& s = c.input(0);
  const auto& axes = c.op().attr<std::vector<int64_t>>("squeeze_dims");
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] >= -s.rank() && axes[i] < s.rank()) continue;
    return {absl::StrCat("squeeze_dims[", i, "] not in [-", s.rank(), ",",
                         s.rank(), ").")};
  }
  return {};
}

Said ExpandDimsSaid(const ShapeContext& c, StringView) {
  absl::InlinedVector<int64_t, 8> axis;
  if (!c.input(0).known_rank() || !c.IntValues(1, &axis) || axis.size() != 1) {
    return {};
  }
  const int rank = c.input(0).rank();
  return {absl::StrCat("dim ", axis[0], " not in the interval [", -rank - 1,
                       ", ", rank, "]."),
          2};
}

Said TransposeSaid(const ShapeContext& c, StringView) {
  const int rank = c.input(0).rank();
  const Shape& p = c.input(1);
  if (p.known_rank() && p.rank() == 1 && Differ(p[0], rank)) {
    return Exactly(rank, p[0]);
  }
  absl::InlinedVector<int64_t, 8> perm;
  c.IntValues(1, &perm);
  for (int64_t d : perm) {
    if (d < rank && d >= -rank) continue;
    return {
        absl::StrCat("perm dim ", d, " is out of range of input rank ", rank),
        2};
  }
  return {};
}

Said TileSaid(const ShapeContext& c, StringView) {
  const Shape& m = c.input(1);
  if (!m.known_rank() || m.rank() != 1 || !c.input(0).known_rank()) return {};
  return Differ(m[0], c.input(0).rank())
             ? Rank(c.input(0).rank(), static_cast<int>(m[0]))
             : Said{};
}

Said PadSaid(const ShapeContext& c, StringView text) {
  const Shape& p = c.input(1);
  if (absl::StartsWith(text, "Paddings must be non-negative")) {
    return {"Paddings must be non-negative", 2};
  }
  if (!p.known_rank() || !c.input(0).known_rank()) return {};
  if (p.rank() != 2) return Rank(2, p.rank());
  if (Differ(p[1], 2)) return Exactly(2, p[1]);
  return Differ(p[0], c.input(0).rank())
             ? Rank(static_cast<int>(p[0]), c.input(0).rank())
             : Said{};
}

Said SliceSaid(const ShapeContext& c, StringView) {
  for (int i : {1, 2}) {
    if (c.input(i).known_rank() && c.input(i).rank() != 1) {
      return Rank(1, c.input(i).rank());
    }
  }
  return Merge(c.input(1), c.input(2));
}

Said StridedSliceSaid(const ShapeContext&, StringView text) {
  return {"", absl::StartsWith(text, "slice index") ? 14u : 8u};
}

Said GatherSaid(const ShapeContext& c, StringView text) {
  if (absl::StartsWith(text, "Shape must be at least")) return {"", 4};
  return c.input(0).known_rank() && c.input(0).rank() == 0 ? RankAtLeast(1, 0)
                                                           : Said{};
}

Said GatherNdSaid(const ShapeContext& c, StringView) {
  return {absl::StrCat(
      "indices.shape[-1] must be <= params.rank, but saw "
      "indices shape: ",
      c.input(1).ToString(), " and params shape: ", c.input(0).ToString())};
}

// `i`, `u`: which inputs are the indices and the updates.
Said Scatter(const Shape& indices, const Shape& updates) {
  if (!indices.known_rank() || !updates.known_rank() || indices.rank() < 1) {
    return {};
  }
  const int outer = indices.rank() - 1;
  if (updates.rank() < outer) return {};
  const Shape a(indices.dims().subspan(0, outer)),
      b(updates.dims().subspan(0, outer));
  Said differ = Merge(a, b);
  if (differ.text.empty()) return {};
  return {absl::StrCat("Dimensions [0,", outer,
                       ") of indices[shape=", indices.ToString(),
                       "] = ", a.ToString(), " must match dimensions [0,",
                       outer, ") of updates[shape=", updates.ToString(),
                       "] = ", b.ToString(), ": ", differ.text)};
}
Said ScatterNdSaid(const ShapeContext& c, StringView) {
  return Scatter(c.input(0), c.input(1));
}
Said TensorScatterSaid(const ShapeContext& c, StringView) {
  return Scatter(c.input(1), c.input(2));
}

Said SelectSaid(const ShapeContext& c, StringView) {
  Said s = Broadcast(c.input(1), c.input(2));
  if (!s.text.empty()) return s;
  StatusOr<Shape> both = BroadcastShapes(c.input(1), c.input(2));
  return both.ok() ? Broadcast(c.input(0), *both) : Said{};
}

Said FillSaid(const ShapeContext& c, StringView text) {
  if (c.input(0).known_rank() && c.input(0).rank() != 1) {
    return Rank(1, c.input(0).rank());
  }
  return absl::EndsWith(text, "must be >= 0")
             ? Said{"Fill dimensions must be >= 0", 0, 1}
             : Said{};
}

Said RangeSaid(const ShapeContext& c, StringView text) {
  static constexpr const char* kNames[] = {"start", "limit", "delta"};
  for (int i = 0; i < 3; ++i) {
    if (!c.input(i).known_rank() || c.input(i).rank() == 0) continue;
    Said s = Rank(0, c.input(i).rank());
    absl::StrAppend(&s.text, "\n\t for '", kNames[i], "'");
    return s;
  }
  if (absl::StartsWith(text, "Requires delta != 0")) {
    return {"Requires delta != 0", 7};
  }
  return {"", 7};
}

Said ReductionSaid(const ShapeContext& c, StringView text) {
  absl::InlinedVector<int64_t, 8> axes;
  if (!absl::StartsWith(text, "Invalid reduction dimension") ||
      !c.input(0).known_rank() || !c.IntValues(1, &axes)) {
    return {};
  }
  const int rank = c.input(0).rank();
  for (int64_t a : axes) {
    if (a >= -rank && a < rank) continue;
    return {absl::StrCat("Invalid reduction dimension ", a, " for input with ",
                         rank, " dimensions."),
            2};
  }
  return {};
}

Said ArgMaxSaid(const ShapeContext& c, StringView) {
  absl::InlinedVector<int64_t, 8> axis;
  if (!c.input(0).known_rank() || !c.IntValues(1, &axis) || axis.empty()) {
    return {};
  }
  const int rank = c.input(0).rank();
  return {absl::StrCat("Dimension (", axis[0], ") must be in the range [",
                       -rank, ", ", rank, "), where ", rank,
                       " is the number of dimensions in the input."),
          2};
}

Said TopKSaid(const ShapeContext& c, StringView) {
  const Shape& s = c.input(0);
  absl::InlinedVector<int64_t, 8> k;
  if (!s.known_rank()) return {};
  if (s.rank() < 1) return RankAtLeast(1, s.rank());
  if (!c.IntValues(1, &k) || k.empty() || k[0] < 0) return {};
  return {absl::StrCat("input must have last dimension >= k = ", k[0],
                       " but is ", s[s.rank() - 1]),
          2};
}

Said BothSaid(const ShapeContext& c, StringView) {
  return Broadcast(c.input(0), c.input(1));
}

Said BiasAddSaid(const ShapeContext& c, StringView) {
  const Shape &x = c.input(0), &b = c.input(1);
  if (!x.known_rank() || !b.known_rank()) return {};
  if (b.rank() != 1) return Rank(1, b.rank());
  if (x.rank() < 2) return RankAtLeast(2, x.rank());
  const bool first = c.op().string_attr("data_format") == "NCHW";
  return Equal(x[first ? 1 : x.rank() - 1], b[0]);
}

// Convolutions and pools of `spatial` dimensions.
Said ConvSaid(const ShapeContext& c, int spatial) {
  const Shape &x = c.input(0), &f = c.input(1);
  for (const Shape* s : {&x, &f}) {
    if (!s->known_rank()) return {};
    if (s->rank() != spatial + 2) return Rank(spatial + 2, s->rank());
  }
  const bool first = absl::StartsWith(c.op().string_attr("data_format"), "NC");
  const int64_t depth = x[first ? 1 : spatial + 1], of_filter = f[spatial];
  if (depth < 0 || of_filter < 1 || depth % of_filter == 0) return {};
  return {absl::StrCat("Depth of input (", depth,
                       ") is not a multiple of input depth of filter (",
                       of_filter, ")")};
}
Said Conv2DSaid(const ShapeContext& c, StringView) { return ConvSaid(c, 2); }
Said Conv3DSaid(const ShapeContext& c, StringView) { return ConvSaid(c, 3); }

Said DepthwiseSaid(const ShapeContext& c, StringView text) {
  if (!absl::StartsWith(text, "input and filter must have the same depth")) {
    return {};
  }
  const bool first = c.op().string_attr("data_format") == "NCHW";
  return Equal(c.input(0)[first ? 1 : 3], c.input(1)[2]);
}

Said FourDimensionsSaid(const ShapeContext& c, StringView) {
  const Shape& s = c.input(0);
  return s.known_rank() && s.rank() != 4 ? Rank(4, s.rank()) : Said{};
}
Said VectorSaid(const ShapeContext& c, StringView) {
  const Shape& s = c.input(0);
  return s.known_rank() && s.rank() != 1 ? Rank(1, s.rank()) : Said{};
}
Said ScalarSaid(const ShapeContext& c, StringView) {
  const Shape& s = c.input(0);
  return s.known_rank() && s.rank() != 0 ? Rank(0, s.rank()) : Said{};
}
Said MatrixAtLeastSaid(const ShapeContext& c, StringView) {
  const Shape& s = c.input(0);
  return s.known_rank() && s.rank() < 2 ? RankAtLeast(2, s.rank()) : Said{};
}
// Square matrices, and right sides with as many rows.
Said SquareSaid(const ShapeContext& c, StringView text) {
  const Shape& s = c.input(0);
  if (!s.known_rank()) return {};
  if (s.rank() < 2) return RankAtLeast(2, s.rank());
  const int64_t rows = s[s.rank() - 2], columns = s[s.rank() - 1];
  if (Differ(rows, columns)) {
    return c.op().name() == "MatrixDeterminant" ? Equal(columns, rows)
                                                : Equal(rows, columns);
  }
  if (c.num_inputs() < 2 || !c.input(1).known_rank()) return {};
  const Shape& b = c.input(1);
  if (b.rank() < 2) return RankAtLeast(2, b.rank());
  return Differ(rows, b[b.rank() - 2]) ? Equal(rows, b[b.rank() - 2]) : Said{};
}

Said LastOfThreeSaid(const ShapeContext& c, StringView) {
  const Shape& s = c.input(0);
  if (!s.known_rank()) return {};
  if (s.rank() < 1) return RankAtLeast(1, s.rank());
  return Differ(s[s.rank() - 1], 3) ? Exactly(3, s[s.rank() - 1]) : Said{};
}

Said StringJoinSaid(const ShapeContext& c, StringView) {
  Shape all = Shape::UnknownRank();
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.input(i).known_rank() && c.input(i).rank() == 0) continue;
    Said s = Merge(all, c.input(i));
    if (!s.text.empty()) return s;
    if (!all.known_rank()) all = c.input(i);
  }
  return {};
}

Said SegmentSaid(const ShapeContext& c, StringView) {
  const Shape& ids = c.input(1);
  return ids.known_rank() && ids.rank() != 1 ? Rank(1, ids.rank()) : Said{};
}

// Data that start with the shape of the ids.
Said PrefixSaid(const ShapeContext& c, StringView text) {
  const Shape &x = c.input(0), &ids = c.input(1);
  absl::InlinedVector<int64_t, 8> n;
  if (absl::EndsWith(text, "must not be negative.") && c.num_inputs() > 2 &&
      c.IntValues(2, &n) && !n.empty()) {
    return {absl::StrCat("Dimension size, given by scalar input 2, must be "
                         "non-negative but is ",
                         n[0]),
            4};
  }
  if (!x.known_rank() || !ids.known_rank()) return {};
  if (x.rank() < ids.rank()) return RankAtLeast(ids.rank(), x.rank());
  for (int i = 0; i < ids.rank(); ++i) {
    if (Differ(x[i], ids[i])) return Equal(x[i], ids[i]);
  }
  return {};
}

Said BroadcastToSaid(const ShapeContext& c, StringView) {
  const Shape& to = c.input(1);
  if (to.known_rank() && to.rank() == 1 && c.input(0).known_rank() &&
      to[0] >= 0 && to[0] < c.input(0).rank()) {
    return {absl::StrCat("Shape must be at most rank ", to[0], " but is rank ",
                         c.input(0).rank())};
  }
  StatusOr<Shape> shape = c.ShapeValue(1);
  Said s = shape.ok() ? Broadcast(c.input(0), *shape) : Said{};
  s.partial_shapes = 2;
  return s;
}

Said EnsureShapeSaid(const ShapeContext& c, StringView) {
  const Shape& must = c.op().attr<Shape>("shape");
  return must.known_rank() && c.input(0).known_rank() &&
                 must.rank() != c.input(0).rank()
             ? Rank(must.rank(), c.input(0).rank())
             : Merge(must, c.input(0));
}

Said SeedSaid(const ShapeContext& c, StringView) {
  const Shape& s = c.input(0);
  if (!s.known_rank()) return {};
  return s.rank() != 1 ? Rank(1, s.rank()) : Exactly(2, s[0]);
}

using SaidFn = Said (*)(const ShapeContext&, StringView);

const absl::flat_hash_map<std::string, SaidFn>& Table() {
  static const auto* table = new absl::flat_hash_map<std::string, SaidFn>{
      {"MatMul", MatMulSaid},
      {"BatchMatMul", BatchMatMulSaid},
      {"BatchMatMulV2", BatchMatMulSaid},
      {"Reshape", ReshapeSaid},
      {"ConcatV2", ConcatSaid},
      {"Pack", MergeAllSaid},
      {"AddN", MergeAllSaid},
      {"Unpack", UnpackSaid},
      {"Split", SplitSaid},
      {"SplitV", SplitVSaid},
      {"MatrixDiagV2", MatrixSaid},
      {"MatrixDiagV3", MatrixSaid},
      {"MatrixSetDiagV2", MatrixSaid},
      {"MatrixSetDiagV3", MatrixSaid},
      {"MatrixBandPart", MatrixSaid},
      {"Squeeze", SqueezeSaid},
      {"ExpandDims", ExpandDimsSaid},
      {"Transpose", TransposeSaid},
      {"Tile", TileSaid},
      {"Pad", PadSaid},
      {"PadV2", PadSaid},
      {"Slice", SliceSaid},
      {"StridedSlice", StridedSliceSaid},
      {"GatherV2", GatherSaid},
      {"GatherNd", GatherNdSaid},
      {"ScatterNd", ScatterNdSaid},
      {"TensorScatterUpdate", TensorScatterSaid},
      {"TensorScatterAdd", TensorScatterSaid},
      {"TensorScatterSub", TensorScatterSaid},
      {"SelectV2", SelectSaid},
      {"Fill", FillSaid},
      {"Range", RangeSaid},
      {"Sum", ReductionSaid},
      {"Mean", ReductionSaid},
      {"Prod", ReductionSaid},
      {"Max", ReductionSaid},
      {"Min", ReductionSaid},
      {"Any", ReductionSaid},
      {"All", ReductionSaid},
      {"EuclideanNorm", ReductionSaid},
      {"ArgMax", ArgMaxSaid},
      {"ArgMin", ArgMaxSaid},
      {"TopKV2", TopKSaid},
      {"SoftmaxCrossEntropyWithLogits", BothSaid},
      {"BiasAdd", BiasAddSaid},
      {"Conv2D", Conv2DSaid},
      {"Conv3D", Conv3DSaid},
      {"DepthwiseConv2dNative", DepthwiseSaid},
      {"MaxPool", FourDimensionsSaid},
      {"AvgPool", FourDimensionsSaid},
      {"LRN", FourDimensionsSaid},
      {"Unique", VectorSaid},
      {"DecodePng", ScalarSaid},
      {"DecodeJpeg", ScalarSaid},
      {"DecodeGif", ScalarSaid},
      {"DecodeBmp", ScalarSaid},
      {"DecodeImage", ScalarSaid},
      {"MatrixDiagPartV3", MatrixAtLeastSaid},
      {"MatrixInverse", SquareSaid},
      {"MatrixDeterminant", SquareSaid},
      {"Cholesky", SquareSaid},
      {"MatrixSolve", SquareSaid},
      {"MatrixTriangularSolve", SquareSaid},
      {"SelfAdjointEigV2", SquareSaid},
      {"Cross", LastOfThreeSaid},
      {"RGBToHSV", LastOfThreeSaid},
      {"HSVToRGB", LastOfThreeSaid},
      {"StringJoin", StringJoinSaid},
      {"SegmentSum", SegmentSaid},
      {"SegmentMean", SegmentSaid},
      {"SegmentMax", SegmentSaid},
      {"SegmentMin", SegmentSaid},
      {"SegmentProd", SegmentSaid},
      {"UnsortedSegmentSum", PrefixSaid},
      {"UnsortedSegmentMax", PrefixSaid},
      {"UnsortedSegmentMin", PrefixSaid},
      {"UnsortedSegmentProd", PrefixSaid},
      {"DynamicPartition", PrefixSaid},
      {"BroadcastTo", BroadcastToSaid},
      {"EnsureShape", EnsureShapeSaid},
      {"StatelessRandomGetKeyCounter", SeedSaid},
  };
  return *table;
}

// A window of `size`, its cells `dilation` apart, over a dimension of `of`.
Said Window(int64_t of, int64_t size, int64_t dilation) {
  int64_t reach;
  if (of < 0 || size < 1 || dilation < 1 ||
      !MultiplyChecked(size - 1, dilation, &reach) || reach < of) {
    return {};
  }
  return {absl::StrCat("Negative dimension size caused by subtracting ",
                       reach + 1, " from ", of)};
}

// `filter`: the input with the window's sizes in front; -1: they are "ksize".
Said WindowsSaid(const ShapeContext& c, int filter) {
  const ResolvedOp& op = c.op();
  const Shape& x = c.input(0);
  if (op.string_attr("padding") != "VALID" || !x.known_rank()) return {};
  const auto* dilations = op.attrs().Get<std::vector<int64_t>>("dilations");
  const bool first = absl::StartsWith(op.string_attr("data_format"), "NC");
  for (int i = 0; i + 2 < x.rank(); ++i) {
    const int at = first ? i + 2 : i + 1;
    const size_t k = static_cast<size_t>(at);
    int64_t size;
    if (filter < 0) {
      const auto& sizes = op.attr<std::vector<int64_t>>("ksize");
      size = k < sizes.size() ? sizes[k] : -1;
    } else {
      const Shape& f = c.input(filter);
      size = f.known_rank() && i < f.rank() ? f[i] : -1;
    }
    Said s = Window(x[at], size,
                    dilations && k < dilations->size() ? (*dilations)[k] : 1);
    if (!s.text.empty()) return s;
  }
  return {};
}
Said FilterSaid(const ShapeContext& c) { return WindowsSaid(c, 1); }
Said PoolSaid(const ShapeContext& c) { return WindowsSaid(c, -1); }

Said ReverseSaid(const ShapeContext& c) {
  absl::InlinedVector<int64_t, 8> axes;
  if (!c.input(0).known_rank() || !c.IntValues(1, &axes)) return {};
  const int rank = c.input(0).rank();
  std::vector<bool> seen(rank);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t at = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (at < 0 || at >= rank) {
      return {absl::StrCat("'axis'[", i, "] = ", axes[i],
                           " is out of valid range [0, ", rank - 1),
              2};
    }
    if (seen[at]) {
      return {absl::StrCat("axis ", at, " specified more than once."), 2};
    }
    seen[at] = true;
  }
  return {};
}

Said SamplesSaid(const ShapeContext& c) {
  absl::InlinedVector<int64_t, 8> n;
  if (!c.IntValues(1, &n) || n.empty() || n[0] >= 0) return {};
  return {absl::StrCat("Dimension size, given by scalar input 1, must be "
                       "non-negative but is ",
                       n[0]),
          2};
}

using OnlyFn = Said (*)(const ShapeContext&);

// By definition, as every node that is recorded is looked up.
const absl::flat_hash_map<const OpDef*, OnlyFn>& OnlyTable() {
  static const auto* table = new absl::flat_hash_map<const OpDef*, OnlyFn>{
      {FindOp("Conv2D"), FilterSaid},
      {FindOp("Conv3D"), FilterSaid},
      {FindOp("DepthwiseConv2dNative"), FilterSaid},
      {FindOp("MaxPool"), PoolSaid},
      {FindOp("AvgPool"), PoolSaid},
      {FindOp("MaxPool3D"), PoolSaid},
      {FindOp("AvgPool3D"), PoolSaid},
      {FindOp("ReverseV2"), ReverseSaid},
      {FindOp("Multinomial"), SamplesSaid},
  };
  return *table;
}

}  // namespace

ShapeRefusal RefusedOnlyInGraph(const ShapeContext& c) {
  const auto found = OnlyTable().find(&c.op().def());
  return found == OnlyTable().end() ? Said{} : found->second(c);
}

ShapeRefusal RefusalInGraph(const ShapeContext& c, StringView rule_text) {
  const auto found = Table().find(c.op().name());
  if (found != Table().end()) return found->second(c, rule_text);
  if (c.num_inputs() == 2 && absl::StartsWith(rule_text, "Incompatible shap")) {
    return Broadcast(c.input(0), c.input(1));
  }
  return {};
}

}  // namespace headrace
