// DecodeProtoV2: fields of serialised messages as tensors.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <bit>

#include "formats/proto_text.h"
#include "op/op.h"
#include "ops/parsing/proto/message_type.h"
#include "ops/parsing/proto/wire_fields.h"
#include "tensor/dtype_proto.h"
#include "tensorflow/core/framework/types.pb.h"

namespace headrace {
namespace {

using google::protobuf::FieldDescriptor;
using Wire = google::protobuf::internal::WireFormatLite;

// Whether a field's values are given as `dtype`.
bool ReadAs(const FieldDescriptor& field, DType dtype) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_DOUBLE:
      return dtype == DType::kDouble;
    case FieldDescriptor::TYPE_FLOAT:
      return dtype == DType::kFloat || dtype == DType::kDouble;
    case FieldDescriptor::TYPE_INT64:
    case FieldDescriptor::TYPE_SFIXED64:
    case FieldDescriptor::TYPE_SINT64:
      return dtype == DType::kInt64;
    case FieldDescriptor::TYPE_UINT64:
    case FieldDescriptor::TYPE_FIXED64:
      return dtype == DType::kUint64;
    case FieldDescriptor::TYPE_INT32:
    case FieldDescriptor::TYPE_SFIXED32:
    case FieldDescriptor::TYPE_SINT32:
      return dtype == DType::kInt32 || dtype == DType::kInt64;
    case FieldDescriptor::TYPE_UINT32:
    case FieldDescriptor::TYPE_FIXED32:
      return dtype == DType::kUint32 || dtype == DType::kUint64;
    case FieldDescriptor::TYPE_ENUM:
      return dtype == DType::kInt32;
    case FieldDescriptor::TYPE_BOOL:
      return dtype == DType::kBool;
    default:
      return dtype == DType::kString;
  }
}

// A signed number of a field.
int64_t SignedOf(const FieldDescriptor& field, uint64_t bits) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_SINT32:
      return Wire::ZigZagDecode32(static_cast<uint32_t>(bits));
    case FieldDescriptor::TYPE_SINT64:
      return Wire::ZigZagDecode64(bits);
    case FieldDescriptor::TYPE_INT32:
    case FieldDescriptor::TYPE_SFIXED32:
    case FieldDescriptor::TYPE_ENUM:
      return static_cast<int32_t>(bits);
    default:
      return static_cast<int64_t>(bits);
  }
}

uint64_t UnsignedOf(const FieldDescriptor& field, uint64_t bits) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_UINT32
             ? static_cast<uint32_t>(bits)
             : bits;
}

// Element `at` of `out`, of a dtype that the field is read as.
void PutValue(const FieldDescriptor& field, const WireValue& value, int64_t at,
              Tensor& out) {
  const float single = std::bit_cast<float>(static_cast<uint32_t>(value.bits));
  switch (out.dtype()) {
    case DType::kFloat:
      out.data<float>()[at] = single;
      break;
    case DType::kDouble:
      out.data<double>()[at] = field.type() == FieldDescriptor::TYPE_FLOAT
                                   ? single
                                   : std::bit_cast<double>(value.bits);
      break;
    case DType::kInt32:
      out.data<int32_t>()[at] =
          static_cast<int32_t>(SignedOf(field, value.bits));
      break;
    case DType::kInt64:
      out.data<int64_t>()[at] = SignedOf(field, value.bits);
      break;
    case DType::kUint32:
      out.data<uint32_t>()[at] = static_cast<uint32_t>(value.bits);
      break;
    case DType::kUint64:
      out.data<uint64_t>()[at] = UnsignedOf(field, value.bits);
      break;
    case DType::kBool:
      out.data<bool>()[at] = value.bits != 0;
      break;
    default:
      out.data<std::string>()[at] = std::string(value.bytes);
  }
}

// What stands for values that are missing: the field's default, or that of its
// type.
WireValue DefaultOf(const FieldDescriptor& field) {
  WireValue value;
  if (field.is_repeated()) return value;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_FLOAT:
      value.bits = std::bit_cast<uint32_t>(field.default_value_float());
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      value.bits = std::bit_cast<uint64_t>(field.default_value_double());
      break;
    case FieldDescriptor::CPPTYPE_INT32:
      value.bits = static_cast<uint32_t>(field.default_value_int32());
      if (field.type() == FieldDescriptor::TYPE_SINT32) {
        value.bits = Wire::ZigZagEncode32(field.default_value_int32());
      }
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      value.bits = static_cast<uint64_t>(field.default_value_int64());
      if (field.type() == FieldDescriptor::TYPE_SINT64) {
        value.bits = Wire::ZigZagEncode64(field.default_value_int64());
      }
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
      value.bits = field.default_value_uint32();
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      value.bits = field.default_value_uint64();
      break;
    case FieldDescriptor::CPPTYPE_BOOL:
      value.bits = field.default_value_bool();
      break;
    case FieldDescriptor::CPPTYPE_ENUM:
      value.bits = static_cast<uint32_t>(field.default_value_enum()->number());
      break;
    case FieldDescriptor::CPPTYPE_STRING:
      value.bytes = field.default_value_string();
      break;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      break;
  }
  return value;
}

class DecodeProtoKernel : public Kernel {
 public:
  static StatusOr<std::unique_ptr<Kernel>> Make(const ResolvedOp& op) {
    const auto& names = op.attr<std::vector<std::string>>("field_names");
    const auto& types = op.attr<std::vector<DType>>("output_types");
    HR_ASSIGN_OR_RETURN(MessageType type,
                        FindMessageType(op.string_attr("descriptor_source"),
                                        op.string_attr("message_type")));
    if (names.size() != types.size()) {
      return InvalidArgument(
          "field_names and output_types attributes must have the same length");
    }
    HR_ASSIGN_OR_RETURN(auto fields,
                        FindFields(type, names, /*extensions=*/true));
    for (size_t i = 0; i < fields.size(); ++i) {
      if (ReadAs(*fields[i], types[i])) continue;
      return InvalidArgument("Unexpected output type for ",
                             fields[i]->full_name(), ": ",
                             fields[i]->type_name(), " to ",
                             tensorflow::DataType_Name(TypeToProto(types[i])));
    }
    const std::string& format = op.string_attr("message_format");
    if (format != "binary" && format != "text") {
      return InvalidArgument("format must be one of binary or text");
    }
    return std::unique_ptr<Kernel>(
        new DecodeProtoKernel(std::move(type), std::move(fields),
                              format == "text", op.bool_attr("sanitize")));
  }

  Status Run(KernelContext& c) override {
    const Tensor& in = c.input(0);
    if (in.num_elements() == 0) {
      return InvalidArgument("Bufs argument must contain at least one value");
    }
    absl::Span<const std::string> messages = in.span<std::string>();
    std::vector<std::string> rewritten;
    if (text_ || sanitize_) {
      for (const std::string& message : messages) {
        HR_RETURN_IF_ERROR(c.CheckCancelled());
        HR_ASSIGN_OR_RETURN(rewritten.emplace_back(), Rewritten(message));
      }
      messages = rewritten;
    }
    std::vector<int32_t> most(fields_.size(), 1);
    HR_RETURN_IF_ERROR(Count(c, messages, &most));
    for (int k = 0; k < fields_.size(); ++k) {
      HR_RETURN_IF_ERROR(
          c.Allocate(k + 1, in.shape().Concat(Shape{int64_t{most[k]}})));
    }
    for (size_t m = 0; m < messages.size(); ++m) {
      HR_RETURN_IF_ERROR(Fill(c, messages[m], static_cast<int64_t>(m), most));
    }
    return OkStatus();
  }

 private:
  DecodeProtoKernel(MessageType type,
                    std::vector<const FieldDescriptor*> fields, bool text,
                    bool sanitize)
      : type_(std::move(type)),
        fields_(std::move(fields)),
        text_(text),
        sanitize_(sanitize),
        factory_(type_.pool.get()),
        prototype_(factory_.GetPrototype(type_.descriptor)) {}

  // The message as protobuf itself writes it.
  StatusOr<std::string> Rewritten(const std::string& given) {
    std::unique_ptr<google::protobuf::Message> message(prototype_->New());
    if (text_ ? ReadProtoText(given, message.get()).has_value()
              : !message->ParsePartialFromString(given)) {
      return DataLoss("Unable to parse ", text_ ? "text" : "binary",
                      " protobuf");
    }
    std::string bytes;
    if (!message->SerializePartialToString(&bytes)) {
      return DataLoss("Unable to serialize protobuf");
    }
    return bytes;
  }

  // Fills output 0; *most: the most values of each field, at least one.
  Status Count(KernelContext& c, absl::Span<const std::string> messages,
               std::vector<int32_t>* most) const {
    int32_t* sizes = c.out<int32_t>(0);
    for (const std::string& message : messages) {
      HR_RETURN_IF_ERROR(c.CheckCancelled());
      std::fill_n(sizes, fields_.size(), 0);
      HR_RETURN_IF_ERROR(
          fields_.ForEach(message, [&](int field, const WireValue&) {
            if (fields_[field].is_repeated() || sizes[field] == 0)
              ++sizes[field];
          }));
      for (int k = 0; k < fields_.size(); ++k) {
        (*most)[k] = std::max((*most)[k], sizes[k]);
      }
      sizes += fields_.size();
    }
    return OkStatus();
  }

  Status Fill(KernelContext& c, const std::string& message, int64_t m,
              const std::vector<int32_t>& most) const {
    HR_RETURN_IF_ERROR(c.CheckCancelled());
    std::vector<int32_t> filled(fields_.size(), 0);
    HR_RETURN_IF_ERROR(
        fields_.ForEach(message, [&](int field, const WireValue& value) {
          // Of a field that is not repeated the last value counts.
          if (!fields_[field].is_repeated()) filled[field] = 0;
          PutValue(fields_[field], value, m * most[field] + filled[field]++,
                   c.output(field + 1));
        }));
    for (int k = 0; k < fields_.size(); ++k) {
      const WireValue missing = DefaultOf(fields_[k]);
      for (int32_t i = filled[k]; i < most[k]; ++i) {
        PutValue(fields_[k], missing, m * most[k] + i, c.output(k + 1));
      }
    }
    return OkStatus();
  }

  const MessageType type_;
  const WireFields fields_;
  const bool text_, sanitize_;
  google::protobuf::DynamicMessageFactory factory_;
  const google::protobuf::Message* const prototype_;
};

Status DecodedShapes(ShapeContext& c) {
  const Shape& batch = c.input(0);
  if (!batch.known_rank()) return OkStatus();
  const int64_t fields = static_cast<int64_t>(
      c.op().attr<std::vector<std::string>>("field_names").size());
  c.set_output(0, batch.Concat(Shape{fields}));
  for (int k = 1; k < c.num_outputs(); ++k) {
    c.set_output(k, batch.Concat(Shape{Shape::kUnknown}));
  }
  return OkStatus();
}

HR_OP(DecodeProtoV2)
    .Input("bytes: string")
    .Output("sizes: int32")
    .Output("values: output_types")
    .Attr("message_type: string")
    .Attr("field_names: list(string)")
    .Attr("output_types: list(type) >= 0")
    .Attr("descriptor_source: string = 'local://'")
    .Attr("message_format: string = 'binary'")
    .Attr("sanitize: bool = false")
    .Doc(
        "Fields of serialised messages: how many values each message has of "
        "each field, and the values, padded with the field's default to the "
        "most of any message. Messages within the message are strings of "
        "their bytes.")
    .Shape(DecodedShapes)
    .NoGradient()
    .Cpu(DecodeProtoKernel::Make);

}  // namespace
}  // namespace headrace
