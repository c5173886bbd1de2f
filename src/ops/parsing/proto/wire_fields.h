// Fields of messages read where they lie, without making messages of them.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/hash_map.h"
#include "base/status.h"

namespace google::protobuf {
class FieldDescriptor;
}

namespace headrace {

// One value of a field: `bits` of numbers as they lie on the wire, `bytes` of
// texts and messages, and of groups with their tags.
struct WireValue {
  uint64_t bits = 0;
  StringView bytes;
};

// The fields that somebody wants. Of several of one number the first has them.
class WireFields {
 public:
  using Visit = absl::FunctionRef<void(int field, const WireValue& value)>;

  explicit WireFields(
      std::vector<const google::protobuf::FieldDescriptor*> fields);
  const google::protobuf::FieldDescriptor& operator[](int i) const {
    return *fields_[i];
  }
  int size() const { return static_cast<int>(fields_.size()); }
  // Calls visit(i, value) for each value of field i in `message`, packed or
  // not, in their order. DataLoss for bytes that are no message. Fields whose
  // wire type is another are passed over, as unknown ones are.
  Status ForEach(StringView message, Visit visit) const;

 private:
  const std::vector<const google::protobuf::FieldDescriptor*> fields_;
  HashMap<int, int> by_number_;
};

}  // namespace headrace
