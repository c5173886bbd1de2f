// UnicodeDecode, UnicodeDecodeWithOffsets, UnicodeEncode, UnicodeTranscode.
#include "op/op.h"
#include "ops/ragged/splits.h"
#include "ops/string/text_codec.h"

namespace headrace {
namespace {

// What becomes of bytes that are no characters.
struct ErrorPolicy {
  enum { kStrict, kReplace, kIgnore } kind;
  int32_t replacement;
  bool replaces_controls = false;
};

StatusOr<ErrorPolicy> PolicyOf(const ResolvedOp& op) {
  const std::string& errors = op.string_attr("errors");
  ErrorPolicy p;
  p.kind = errors == "strict"   ? ErrorPolicy::kStrict
           : errors == "ignore" ? ErrorPolicy::kIgnore
                                : ErrorPolicy::kReplace;
  const int64_t c = op.int_attr("replacement_char");
  if (c < 0 || c > INT32_MAX || !IsCharacter(static_cast<int32_t>(c))) {
    return InvalidArgument("replacement_char out of unicode codepoint range");
  }
  p.replacement = static_cast<int32_t>(c);
  return p;
}

StatusOr<ErrorPolicy> DecodingPolicyOf(const ResolvedOp& op) {
  HR_ASSIGN_OR_RETURN(ErrorPolicy p, PolicyOf(op));
  p.replaces_controls = op.bool_attr("replace_control_characters");
  return p;
}

// Calls each(code point, first byte) for the characters that the policy leaves.
template <typename Each>
Status ReadText(TextDecoder& decoder, const ErrorPolicy& policy,
                const std::string& text, Each each) {
  bool wrong = false;
  decoder.Read(text, [&](int32_t c, size_t at) {
    if (c < 0) {
      wrong = true;
      if (policy.kind == ErrorPolicy::kIgnore) return;
      c = policy.replacement;
    } else if (policy.replaces_controls && c <= 0x1f) {
      if (policy.kind == ErrorPolicy::kIgnore) return;
      c = policy.replacement;
    }
    each(c, at);
  });
  if (wrong && policy.kind == ErrorPolicy::kStrict) {
    return InvalidArgument("Invalid formatting on input string");
  }
  return OkStatus();
}

template <typename T>
Status SetVector(KernelContext& c, int i, const std::vector<T>& values) {
  HR_RETURN_IF_ERROR(c.Allocate(i, Shape{static_cast<int64_t>(values.size())}));
  std::copy(values.begin(), values.end(), c.out<T>(i));
  return OkStatus();
}

Status DecodeText(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const ErrorPolicy policy, DecodingPolicyOf(c.op()));
  HR_ASSIGN_OR_RETURN(auto decoder,
                      MakeTextDecoder(c.op().string_attr("input_encoding")));
  std::vector<int64_t> splits{0}, starts;
  std::vector<int32_t> characters;
  for (const std::string& text : c.input(0).span<std::string>()) {
    HR_RETURN_IF_ERROR(
        ReadText(*decoder, policy, text, [&](int32_t character, size_t at) {
          characters.push_back(character);
          starts.push_back(static_cast<int64_t>(at));
        }));
    splits.push_back(static_cast<int64_t>(characters.size()));
  }
  HR_RETURN_IF_ERROR(SetSplits(c, 0, splits));
  HR_RETURN_IF_ERROR(SetVector(c, 1, characters));
  return c.num_outputs() > 2 ? SetVector(c, 2, starts) : OkStatus();
}

Status DecodeShape(ShapeContext& c) {
  const Shape& in = c.input(0);
  const bool known = in.fully_known();
  c.set_output(0, Shape{known ? in.num_elements() + 1 : Shape::kUnknown});
  for (int i = 1; i < c.num_outputs(); ++i) {
    c.set_output(i, Shape{Shape::kUnknown});
  }
  return OkStatus();
}

OpBuilder DecodeOp(const char* name, const char* doc) {
  OpBuilder b(name);
  b.Input("input: string")
      .Output("row_splits: Tsplits")
      .Output("char_values: int32")
      .Attr("input_encoding: string")
      .Attr("errors: {'strict', 'replace', 'ignore'} = 'replace'")
      .Attr("replacement_char: int = 65533")
      .Attr("replace_control_characters: bool = false")
      .Attr("Tsplits: {int32, int64} = DT_INT64")
      .Doc(doc)
      .Shape(DecodeShape)
      .Cpu(ComputeOwn<DecodeText>);
  return b;
}
const OpRegistrar decode =
    DecodeOp("UnicodeDecode", "The code points of texts, as ragged rows.");
const OpRegistrar decode_with_offsets =
    DecodeOp("UnicodeDecodeWithOffsets",
             "The code points of texts and the bytes where they begin.")
        .Output("char_to_byte_starts: int64");

Status EncodeText(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const ErrorPolicy policy, PolicyOf(c.op()));
  HR_ASSIGN_OR_RETURN(const TextEncoding encoding,
                      TextEncodingOf(c.op().string_attr("output_encoding")));
  const Tensor& splits = c.input(1);
  const int64_t n = c.input(0).num_elements();
  if (c.input(0).rank() != 1 || splits.rank() != 1 ||
      splits.num_elements() < 1 || splits.IntAt(0) != 0 ||
      splits.IntAt(splits.num_elements() - 1) != n) {
    return InvalidArgument(
        "Last value in input_splits must be equal to length of input_tensor.");
  }
  HR_RETURN_IF_ERROR(c.Allocate(0, Shape{splits.num_elements() - 1}));
  for (int64_t row = 0; row + 1 < splits.num_elements(); ++row) {
    if (splits.IntAt(row) > splits.IntAt(row + 1) ||
        splits.IntAt(row + 1) > n) {
      return InvalidArgument(
          "Values in input_splits must be equal or in ascending order.");
    }
    std::string& out = c.out<std::string>(0)[row];
    for (int64_t i = splits.IntAt(row); i < splits.IntAt(row + 1); ++i) {
      int32_t character = c.in<int32_t>(0)[i];
      if (!IsCharacter(character)) {
        if (policy.kind == ErrorPolicy::kIgnore) continue;
        if (policy.kind == ErrorPolicy::kStrict) {
          return InvalidArgument(
              "Code point is out of range for Unicode, or is a surrogate.");
        }
        character = policy.replacement;
      }
      AppendCharacter(character, encoding, &out);
    }
  }
  return OkStatus();
}

Status EncodeShape(ShapeContext& c) {
  const Shape& splits = c.input(1);
  const bool known = splits.known_rank() && splits.rank() == 1 && splits[0] > 0;
  c.set_output(0, Shape{known ? splits[0] - 1 : Shape::kUnknown});
  return OkStatus();
}

HR_OP(UnicodeEncode)
    .Input("input_values: int32")
    .Input("input_splits: Tsplits")
    .Output("output: string")
    .Attr("errors: {'ignore', 'replace', 'strict'} = 'replace'")
    .Attr("output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}")
    .Attr("replacement_char: int = 65533")
    .Attr("Tsplits: {int32, int64} = DT_INT64")
    .Doc("Rows of code points as texts.")
    .Shape(EncodeShape)
    .Cpu(ComputeOwn<EncodeText>);

Status Transcode(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const ErrorPolicy policy, DecodingPolicyOf(c.op()));
  HR_ASSIGN_OR_RETURN(const TextEncoding encoding,
                      TextEncodingOf(c.op().string_attr("output_encoding")));
  HR_ASSIGN_OR_RETURN(auto decoder,
                      MakeTextDecoder(c.op().string_attr("input_encoding")));
  for (int64_t i = 0; i < c.input(0).num_elements(); ++i) {
    std::string out;
    HR_RETURN_IF_ERROR(ReadText(*decoder, policy, c.in<std::string>(0)[i],
                                [&](int32_t character, size_t) {
                                  AppendCharacter(character, encoding, &out);
                                }));
    c.out<std::string>(0)[i] = std::move(out);
  }
  return OkStatus();
}

HR_OP(UnicodeTranscode)
    .Input("input: string")
    .Output("output: string")
    .Attr("input_encoding: string")
    .Attr("output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}")
    .Attr("errors: {'strict', 'replace', 'ignore'} = 'replace'")
    .Attr("replacement_char: int = 65533")
    .Attr("replace_control_characters: bool = false")
    .Doc("Texts of one encoding in another.")
    .Shape(UnchangedShape)
    .Cpu(Compute<Transcode>);

}  // namespace
}  // namespace headrace
