#include "ops/parsing/proto/wire_fields.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

namespace headrace {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::io::CodedInputStream;
using Wire = google::protobuf::internal::WireFormatLite;

Wire::WireType WireTypeOf(const FieldDescriptor& field) {
  return Wire::WireTypeForFieldType(static_cast<Wire::FieldType>(field.type()));
}

// The next `n` bytes of `message`.
bool TakeBytes(CodedInputStream& in, StringView message, uint32_t n,
               StringView* bytes) {
  const size_t at = in.CurrentPosition();
  if (n > message.size() - at) return false;
  *bytes = message.substr(at, n);
  return in.Skip(static_cast<int>(n));
}

// A number of that wire type.
bool TakeNumber(CodedInputStream& in, Wire::WireType type, uint64_t* bits) {
  if (type == Wire::WIRETYPE_VARINT) return in.ReadVarint64(bits);
  if (type == Wire::WIRETYPE_FIXED64) return in.ReadLittleEndian64(bits);
  uint32_t half = 0;
  const bool read = in.ReadLittleEndian32(&half);
  *bits = half;
  return read;
}

// What stands behind `tag`, which begins at `begin`.
bool TakeValue(CodedInputStream& in, StringView message, uint32_t tag,
               size_t begin, WireValue* value) {
  const Wire::WireType type = Wire::GetTagWireType(tag);
  if (type == Wire::WIRETYPE_LENGTH_DELIMITED) {
    uint32_t n;
    return in.ReadVarint32(&n) && TakeBytes(in, message, n, &value->bytes);
  }
  if (type == Wire::WIRETYPE_START_GROUP) {
    if (!Wire::SkipField(&in, tag)) return false;
    value->bytes = message.substr(begin, in.CurrentPosition() - begin);
    return true;
  }
  return TakeNumber(in, type, &value->bits);
}

// A field of numbers of that wire type, packed.
Status TakePacked(CodedInputStream& in, StringView message, Wire::WireType type,
                  absl::FunctionRef<void(const WireValue&)> visit) {
  uint32_t n;
  StringView bytes;
  if (!in.ReadVarint32(&n) || !TakeBytes(in, message, n, &bytes)) {
    return DataLoss("ReadValue: Failed skipping field when counting");
  }
  const int size = type == Wire::WIRETYPE_FIXED64   ? 8
                   : type == Wire::WIRETYPE_FIXED32 ? 4
                                                    : 1;
  if (n % size != 0) {
    return DataLoss("Illegal data length for packed fixed-size type: ", n);
  }
  CodedInputStream packed(reinterpret_cast<const uint8_t*>(bytes.data()),
                          static_cast<int>(n));
  while (packed.CurrentPosition() < static_cast<int>(n)) {
    WireValue value;
    if (!TakeNumber(packed, type, &value.bits)) {
      return DataLoss("Corrupt packed varint");
    }
    visit(value);
  }
  return OkStatus();
}

}  // namespace

WireFields::WireFields(std::vector<const FieldDescriptor*> fields)
    : fields_(std::move(fields)) {
  for (int i = 0; i < size(); ++i) by_number_.emplace(fields_[i]->number(), i);
}

Status WireFields::ForEach(StringView message, Visit visit) const {
  if (message.size() > INT32_MAX) {
    return DataLoss("Unable to parse binary protobuf");
  }
  CodedInputStream in(reinterpret_cast<const uint8_t*>(message.data()),
                      static_cast<int>(message.size()));
  while (true) {
    const size_t begin = in.CurrentPosition();
    const uint32_t tag = in.ReadTag();
    const Wire::WireType type = Wire::GetTagWireType(tag);
    if (tag == 0 || type == Wire::WIRETYPE_END_GROUP) break;
    const auto found = by_number_.find(Wire::GetTagFieldNumber(tag));
    if (found == by_number_.end()) {
      if (Wire::SkipField(&in, tag)) continue;
      return DataLoss("Failed skipping unrequested field");
    }
    const FieldDescriptor& field = *fields_[found->second];
    const Wire::WireType own = WireTypeOf(field);
    if (type == own) {
      WireValue value;
      if (!TakeValue(in, message, tag, begin, &value)) {
        return DataLoss("ReadValue: Failed skipping field when counting");
      }
      visit(found->second, value);
    } else if (type == Wire::WIRETYPE_LENGTH_DELIMITED) {
      if (own == Wire::WIRETYPE_START_GROUP) {
        return DataLoss("Non-primitive type encountered as packed");
      }
      HR_RETURN_IF_ERROR(TakePacked(in, message, own, [&](const WireValue& v) {
        visit(found->second, v);
      }));
    } else if (!Wire::SkipField(&in, tag)) {
      return DataLoss("CollectField: Failed skipping malformed field");
    }
  }
  if (in.ConsumedEntireMessage()) return OkStatus();
  return DataLoss("CountFields: Failed to consume entire buffer");
}

}  // namespace headrace
