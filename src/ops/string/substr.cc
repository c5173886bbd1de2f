// Substr: pieces of strings, with positions that broadcast.
#include <algorithm>

#include "base/utf8.h"
#include "op/op.h"

namespace headrace {
namespace {

Status SubstrShape(ShapeContext& c) {
  if (!c.input(1).CompatibleWith(c.input(2))) {
    return InvalidArgument("pos and len should have the same shape, got: ",
                           c.input(1), " vs. ", c.input(2));
  }
  HR_ASSIGN_OR_RETURN(Shape s, BroadcastShapes(c.input(0), c.input(1)));
  c.set_output(0, std::move(s));
  return OkStatus();
}

// The element of `t` that stands at place `i` of the shape `out`.
int64_t BroadcastIndex(const Shape& out, const Shape& t, int64_t i) {
  if (t.rank() == 0) return 0;
  if (t == out) return i;
  int64_t at = 0, stride = 1;
  for (int d = out.rank() - 1, e = t.rank() - 1; d >= 0; --d, --e) {
    int64_t k = i % out[d];
    i /= out[d];
    if (e < 0) continue;
    if (t[e] != 1) at += k * stride;
    stride *= t[e];
  }
  return at;
}

bool InRange(int64_t pos, int64_t size) { return pos >= -size && pos <= size; }

// `s`: the string, where it is shown.
Status OutOfRangePos(const KernelContext& c, const std::string* s, int64_t pos,
                     int64_t i) {
  std::string index = absl::StrCat(i);
  const Shape& out = c.output(0).shape();
  if (s && c.input(1).rank() > 0 && c.input(1).shape() != out &&
      out.rank() == 2) {
    index = absl::StrCat("(", i / out[1], ", ", i % out[1], ")");
  }
  return InvalidArgument("pos ", pos, " out of range for string",
                         s ? absl::StrCat(" b'", *s, "'") : "", " at index ",
                         index);
}

Status Substr(KernelContext& c) {
  const bool bytes = c.op().string_attr("unit") == "BYTE";
  const Shape& shape = c.output(0).shape();
  const int64_t n = shape.num_elements();
  for (int64_t i = 0; i < n; ++i) {
    int64_t from = BroadcastIndex(shape, c.input(0).shape(), i);
    const std::string& s = c.in<std::string>(0)[from];
    int64_t at = BroadcastIndex(shape, c.input(1).shape(), i);
    int64_t pos = c.input(1).IntAt(at), len = c.input(2).IntAt(at);
    const int64_t size = bytes ? static_cast<int64_t>(s.size()) : Utf8Length(s);
    if (!InRange(pos, size)) {
      return OutOfRangePos(c, bytes ? &s : nullptr, pos, i);
    }
    if (pos < 0) pos += size;
    // A negative length is, as for upstream, all that is left in bytes, but
    // nothing in characters.
    if (len < 0) len = bytes ? size : 0;
    len = std::min(len, size - pos);
    if (bytes) {
      c.out<std::string>(0)[i].assign(s, pos, len);
    } else {
      size_t begin = Utf8Advance(s, 0, pos);
      size_t end = Utf8Advance(s, begin, len);
      c.out<std::string>(0)[i].assign(s, begin, end - begin);
    }
  }
  return OkStatus();
}

HR_OP(Substr)
    .Input("input: string")
    .Input("pos: T")
    .Input("len: T")
    .Output("output: string")
    .Attr("T: {int32, int64}")
    .Attr("unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'")
    .Doc("Pieces of strings: `len` bytes or characters from `pos` on.")
    .Shape(SubstrShape)
    .Cpu(Compute<Substr>);

}  // namespace
}  // namespace headrace
