#include "ops/math/reductions/segment_gradients.h"

#include "absl/strings/match.h"

namespace headrace {
namespace {

bool Unsorted(const GradientContext& g) {
  return absl::StartsWith(g.op().name(), "Unsorted");
}

// `v` joined by the op's segments in another way: "Sum" or "Prod".
Value Segments(GradientContext& g, const char* how, const Value& v) {
  if (Unsorted(g)) {
    return g(absl::StrCat("UnsortedSegment", how), {v, g.input(1), g.input(2)});
  }
  return g(absl::StrCat("Segment", how), {v, g.input(1)});
}

// Each row's segment's row of `v`; zeros for rows that were dropped.
Value Rows(GradientContext& g, const Value& v) {
  Value ids = g.input(1);
  // GatherV2 takes no int16.
  if (ids.dtype() == DType::kInt16) {
    ids = g("Cast", {ids}, {{"DstT", DType::kInt32}});
  }
  if (!Unsorted(g)) return g("GatherV2", {v, ids, g.Int32(0)});
  Value zero = g.Scalar(ids.dtype(), 0);
  // Negative numbers would be refused; what was gathered for them is thrown
  // away below.
  Value rows = g("GatherV2", {v, g("Maximum", {ids, zero}), g.Int32(0)});
  Value kept = g("GreaterEqual", {ids, zero});
  // As many dimensions of 1 as a row has.
  Value extra = g("Sub", {g("Rank", {rows}), g("Rank", {ids})});
  Value ones = g("Fill", {g("Reshape", {extra, g.Int32s({1})}), g.Int32(1)});
  Value shape = g("ConcatV2", {g.ShapeOf(ids), ones, g.Int32(0)});
  return g("SelectV2",
           {g("Reshape", {kept, shape}), rows, g("ZerosLike", {rows})});
}

}  // namespace

Status SegmentSumGradient(GradientContext& g) {
  if (Value d = g.grad()) g.set(0, Rows(g, d));
  return g.status();
}

Status SegmentMeanGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  // Ones of shape [rows, 1, ...], whose sums are the numbers of rows.
  const Value& x = g.input(0);
  Value tail =
      g("Fill",
        {g("Reshape", {g("Sub", {g("Rank", {x}), g.Int32(1)}), g.Int32s({1})}),
         g.Int32(1)});
  Value ids_shape = g.ShapeOf(g.input(1));
  Value shape = g("ConcatV2", {ids_shape, tail, g.Int32(0)});
  // Maximum below knows no complex numbers.
  const DType counted = IsComplex(x.dtype()) ? DType::kDouble : x.dtype();
  Value ones = g("Fill", {shape, g.Scalar(counted, 1)});
  // Segments without rows would divide by 0; nothing flows from them.
  Value counts = g("Maximum", {Segments(g, "Sum", ones), g.Scalar(counted, 1)});
  if (counted != x.dtype()) {
    counts = g("Cast", {counts}, {{"DstT", x.dtype()}});
  }
  g.set(0, Rows(g, g("RealDiv", {d, counts})));
  return g.status();
}

// With one zero in a segment only that element has a gradient; with two, none.
Status SegmentProdGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  const Value& x = g.input(0);
  Value zero = g.Scalar(x.dtype(), 0);
  Value is_zero = g("Equal", {x, zero});
  Value counts =
      Segments(g, "Sum", g("Cast", {is_zero}, {{"DstT", DType::kInt32}}));
  // Two zeros or more: nothing flows.
  d = g("SelectV2",
        {g("Greater", {counts, g.Int32(1)}), g("ZerosLike", {d}), d});
  // The product of all but the zero, for that one element.
  Value others = g("SelectV2", {is_zero, g("OnesLike", {x}), x});
  Value product = Rows(g, Segments(g, "Prod", others));
  // Where nothing is zero: the product over the element.
  Value divided = g("RealDiv", {Rows(g, g.output(0)), x});
  Value partial = g("SelectV2", {is_zero, product, divided});
  g.set(0, g("Mul", {Rows(g, d), partial}));
  return g.status();
}

// Elements equal to the extreme share its gradient.
Status SegmentExtremeGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  const Value& x = g.input(0);
  Value chosen = g("Equal", {x, Rows(g, g.output(0))});
  if (Unsorted(g)) {
    // A dropped row's zeros may be equal to its data: it was not chosen.
    Value present = Rows(g, g("OnesLike", {g.output(0)}));
    Value kept = g("Greater", {present, g.Scalar(x.dtype(), 0)});
    chosen = g("LogicalAnd", {chosen, kept});
  }
  Value counts = Segments(g, "Sum", g("Cast", {chosen}, {{"DstT", x.dtype()}}));
  Value shares = Rows(g, g("RealDiv", {d, counts}));
  g.set(0, g("SelectV2", {chosen, shares, g("ZerosLike", {shares})}));
  return g.status();
}

}  // namespace headrace
