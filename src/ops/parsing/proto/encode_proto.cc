// EncodeProto: messages of tensors of their fields' values.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <numeric>

#include "op/op.h"
#include "op/shared_refusal.h"
#include "ops/parsing/proto/message_type.h"

namespace headrace {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::io::CodedOutputStream;
using google::protobuf::io::StringOutputStream;
using Wire = google::protobuf::internal::WireFormatLite;

// Whether values of `dtype` may be written as a field's.
bool WrittenFrom(const FieldDescriptor& field, DType dtype) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return dtype == DType::kDouble;
    case FieldDescriptor::CPPTYPE_FLOAT:
      return dtype == DType::kFloat || dtype == DType::kDouble;
    case FieldDescriptor::CPPTYPE_INT64:
      return dtype == DType::kInt64;
    case FieldDescriptor::CPPTYPE_UINT64:
      return dtype == DType::kUint64;
    case FieldDescriptor::CPPTYPE_INT32:
      return dtype == DType::kInt32 || dtype == DType::kInt64;
    case FieldDescriptor::CPPTYPE_UINT32:
      return dtype == DType::kUint32 || dtype == DType::kUint64;
    case FieldDescriptor::CPPTYPE_ENUM:
      return dtype == DType::kInt32;
    case FieldDescriptor::CPPTYPE_BOOL:
      return dtype == DType::kBool;
    default:
      return dtype == DType::kString;
  }
}

// Element `at` of `t` as an integer of 64 bits.
uint64_t BitsAt(const Tensor& t, int64_t at) {
  switch (t.dtype()) {
    case DType::kInt32:
      return static_cast<uint64_t>(int64_t{t.data<int32_t>()[at]});
    case DType::kUint32:
      return t.data<uint32_t>()[at];
    case DType::kBool:
      return t.data<bool>()[at];
    default:
      return t.data<uint64_t>()[at];
  }
}

double NumberAt(const Tensor& t, int64_t at) {
  return t.dtype() == DType::kFloat ? t.data<float>()[at]
                                    : t.data<double>()[at];
}

// One number without a tag.
void WriteNumber(const FieldDescriptor& field, const Tensor& t, int64_t at,
                 CodedOutputStream* out) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_DOUBLE:
      return Wire::WriteDoubleNoTag(NumberAt(t, at), out);
    case FieldDescriptor::TYPE_FLOAT:
      return Wire::WriteFloatNoTag(static_cast<float>(NumberAt(t, at)), out);
    case FieldDescriptor::TYPE_FIXED64:
    case FieldDescriptor::TYPE_SFIXED64:
      return out->WriteLittleEndian64(BitsAt(t, at));
    case FieldDescriptor::TYPE_FIXED32:
    case FieldDescriptor::TYPE_SFIXED32:
      return out->WriteLittleEndian32(static_cast<uint32_t>(BitsAt(t, at)));
    case FieldDescriptor::TYPE_UINT32:
      return out->WriteVarint32(static_cast<uint32_t>(BitsAt(t, at)));
    case FieldDescriptor::TYPE_INT32:
    case FieldDescriptor::TYPE_ENUM:
      return out->WriteVarint32SignExtended(
          static_cast<int32_t>(BitsAt(t, at)));
    case FieldDescriptor::TYPE_SINT32:
      return out->WriteVarint32(
          Wire::ZigZagEncode32(static_cast<int32_t>(BitsAt(t, at))));
    case FieldDescriptor::TYPE_SINT64:
      return out->WriteVarint64(
          Wire::ZigZagEncode64(static_cast<int64_t>(BitsAt(t, at))));
    default:  // int64, uint64, bool
      return out->WriteVarint64(BitsAt(t, at));
  }
}

bool IsOfBytes(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_STRING ||
         field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
}

// Elements [begin, begin + n) of `t` as values of the field.
void WriteField(const FieldDescriptor& field, const Tensor& t, int64_t begin,
                int64_t n, CodedOutputStream* out) {
  if (n > 0 && field.is_packed()) {
    std::string packed;
    {
      StringOutputStream bytes(&packed);
      CodedOutputStream numbers(&bytes);
      for (int64_t i = 0; i < n; ++i) {
        WriteNumber(field, t, begin + i, &numbers);
      }
    }
    Wire::WriteTag(field.number(), Wire::WIRETYPE_LENGTH_DELIMITED, out);
    out->WriteVarint32(static_cast<uint32_t>(packed.size()));
    out->WriteString(packed);
    return;
  }
  const auto type =
      Wire::WireTypeForFieldType(static_cast<Wire::FieldType>(field.type()));
  for (int64_t i = begin; i < begin + n; ++i) {
    Wire::WriteTag(field.number(), type, out);
    if (!IsOfBytes(field)) {
      WriteNumber(field, t, i, out);
      continue;
    }
    const std::string& bytes = t.data<std::string>()[i];
    const bool group = field.type() == FieldDescriptor::TYPE_GROUP;
    if (!group) out->WriteVarint32(static_cast<uint32_t>(bytes.size()));
    out->WriteString(bytes);
    if (group) {
      Wire::WriteTag(field.number(), Wire::WIRETYPE_END_GROUP, out);
    }
  }
}

// No more than so many bytes, as messages go: 2 GiB.
int64_t MostBytes(const FieldDescriptor& field, const Tensor& t, int64_t begin,
                  int64_t n) {
  int64_t bytes = 15 * n;  // of a tag, and a number or a length
  for (int64_t i = begin; i < begin + n && IsOfBytes(field); ++i) {
    bytes += static_cast<int64_t>(t.data<std::string>()[i].size());
  }
  return bytes;
}

class EncodeProtoKernel : public Kernel {
 public:
  static StatusOr<std::unique_ptr<Kernel>> Make(const ResolvedOp& op) {
    HR_ASSIGN_OR_RETURN(MessageType type,
                        FindMessageType(op.string_attr("descriptor_source"),
                                        op.string_attr("message_type")));
    HR_ASSIGN_OR_RETURN(
        auto fields,
        FindFields(type, op.attr<std::vector<std::string>>("field_names"),
                   /*extensions=*/false));
    return std::unique_ptr<Kernel>(
        new EncodeProtoKernel(std::move(type), std::move(fields)));
  }

  Status Run(KernelContext& c) override {
    for (size_t k = 0; k < fields_.size(); ++k) {
      const DType dtype = c.input(static_cast<int>(k) + 1).dtype();
      if (WrittenFrom(*fields_[k], dtype)) continue;
      return InvalidArgument("Incompatible type for field ", fields_[k]->name(),
                             ".  Saw dtype: ", DTypeName(dtype),
                             " but field type is: ", fields_[k]->type_name());
    }
    const int64_t messages = c.output(0).num_elements();
    for (int64_t m = 0; m < messages; ++m) {
      HR_RETURN_IF_ERROR(c.CheckCancelled());
      HR_RETURN_IF_ERROR(Write(c, m, &c.out<std::string>(0)[m]));
    }
    return OkStatus();
  }

 private:
  EncodeProtoKernel(MessageType type,
                    std::vector<const FieldDescriptor*> fields)
      : type_(std::move(type)),
        fields_(std::move(fields)),
        order_(fields_.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(), [&](int a, int b) {
      return fields_[a]->number() < fields_[b]->number();
    });
  }

  Status Write(KernelContext& c, int64_t m, std::string* message) const {
    const int64_t width = static_cast<int64_t>(fields_.size());
    StringOutputStream bytes(message);
    CodedOutputStream out(&bytes);
    int64_t most = 0;
    for (const int k : order_) {
      const Tensor& values = c.input(k + 1);
      const int64_t row = values.shape()[values.rank() - 1];
      const int64_t n = c.in<int32_t>(0)[m * width + k];
      if (n > row) {
        return InvalidArgument(
            "Size to write must not be larger than value tensor; but saw: ", n,
            " > ", row, " at message ", m, " field ", k);
      }
      if (n <= 0) continue;
      most += MostBytes(*fields_[k], values, m * row, n);
      if (most > INT32_MAX) {
        return InvalidArgument("message ", m, " would have over 2 GiB");
      }
      WriteField(*fields_[k], values, m * row, n, &out);
    }
    return OkStatus();
  }

  const MessageType type_;
  const std::vector<const FieldDescriptor*> fields_;
  std::vector<int> order_;  // by number
};

Status EncodedShape(ShapeContext& c) {
  const auto& names = c.op().attr<std::vector<std::string>>("field_names");
  const int fields = static_cast<int>(names.size());
  if (!c.in_graph() && c.num_inputs() != fields + 1) {
    return InvalidArgument("Length of inputs list must match field_names");
  }
  Shape batch = Shape::UnknownRank();
  for (int k = 1; k < c.num_inputs(); ++k) {
    const Shape& values = c.input(k);
    if (!values.known_rank()) continue;
    if (values.rank() < 2) {
      return c.Refuse(
          RankIsLess(2, values.rank()),
          InvalidArgument("Invalid shape for field ",
                          k <= fields ? names[k - 1] : "", ".  Saw shape ",
                          values, " but it should be at least a matrix."));
    }
    const Shape own = values.Sub(0, values.rank() - 1);
    StatusOr<Shape> merged = MergeShapes(batch, own);
    if (!merged.ok()) {
      return c.Refuse(
          NotMerged(batch, own),
          InvalidArgument("Values must match up to the last dimension"));
    }
    batch = *std::move(merged);
  }
  c.set_output(0, batch);
  if (c.in_graph() || !batch.known_rank()) return OkStatus();
  const Shape wanted = batch.Concat(Shape{int64_t{fields}});
  if (wanted.fully_known() && !wanted.CompatibleWith(c.input(0))) {
    return InvalidArgument(
        "sizes should be batch_size + [len(field_names)].  Saw: ", c.input(0),
        " but expected: ", wanted);
  }
  return OkStatus();
}

HR_OP(EncodeProto)
    .Input("sizes: int32")
    .Input("values: Tinput_types")
    .Output("bytes: string")
    .Attr("field_names: list(string)")
    .Attr("message_type: string")
    .Attr("descriptor_source: string = 'local://'")
    .Attr("Tinput_types: list(type) >= 1")
    .Doc(
        "Serialised messages of their fields' values: of each message and "
        "field the first so many as sizes says. Messages within the message "
        "are strings of their bytes.")
    .Shape(EncodedShape)
    .NoGradient()
    .Cpu(EncodeProtoKernel::Make);

}  // namespace
}  // namespace headrace
