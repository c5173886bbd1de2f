#include "graph/node_texts.h"

#include <algorithm>

#include "base/coding.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace headrace {
namespace {

enum WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
constexpr int kNodeOfGraph = 1;

// Takes a field's key and, of byte fields, the content. False at a mistake.
bool TakeField(StringView* in, int* number, StringView* content) {
  uint32_t key;
  uint64_t n;
  if (!GetVarint32(in, &key)) return false;
  *number = static_cast<int>(key >> 3);
  *content = StringView();
  if (*number == 0) return false;
  switch (key & 7) {
    case kVarint:
      return GetVarint64(in, &n);
    case kFixed64:
      return GetBytes(in, 8, content);
    case kBytes:
      return GetVarint64(in, &n) && GetBytes(in, n, content);
    case kFixed32:
      return GetBytes(in, 4, content);
    default:  // groups, which nobody writes
      return false;
  }
}

bool IsAscii(StringView text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<signed char>(c) >= 0; });
}

}  // namespace

void NodeTexts::Add(const tensorflow::NodeDef& def) {
  NodeText n;
  n.name = def.name();
  n.op = def.op();
  n.device = def.device();
  n.first_input = static_cast<int>(inputs_.size());
  n.num_inputs = def.input_size();
  n.def = &def;
  for (const std::string& text : def.input()) inputs_.push_back(text);
  nodes_.push_back(n);
}

bool NodeTexts::AddFromNode(StringView bytes) {
  enum { kName = 1, kOp, kInput, kDevice, kAttr };
  NodeText n;
  n.bytes = bytes;
  n.first_input = static_cast<int>(inputs_.size());
  bool attrs_ended = false;
  while (!bytes.empty()) {
    const char* begin = bytes.data();
    const bool is_bytes = (*begin & 7) == kBytes;
    int number;
    StringView content;
    if (!TakeField(&bytes, &number, &content) || !is_bytes || number > kAttr) {
      return false;
    }
    if (number == kAttr) {
      const size_t size = static_cast<size_t>(bytes.data() - begin);
      // Attributes that do not lie side by side have no one span of bytes;
      // protobuf reads those.
      if (attrs_ended) return false;
      n.attrs = n.attrs.empty()
                    ? StringView(begin, size)
                    : StringView(n.attrs.data(), n.attrs.size() + size);
      continue;
    }
    attrs_ended = !n.attrs.empty();
    // Whether other bytes are UTF-8 is for protobuf to say.
    if (!IsAscii(content)) return false;
    if (number == kName) n.name = content;
    if (number == kOp) n.op = content;
    if (number == kDevice) n.device = content;
    if (number == kInput) inputs_.push_back(content);
  }
  n.num_inputs = static_cast<int>(inputs_.size()) - n.first_input;
  nodes_.push_back(n);
  return true;
}

bool NodeTexts::AddFromGraph(StringView bytes, std::string* rest) {
  int number, count = 0;
  StringView content;
  for (StringView left = bytes; !left.empty();) {
    if (!TakeField(&left, &number, &content)) return false;
    count += number == kNodeOfGraph;
  }
  nodes_.reserve(nodes_.size() + count);
  inputs_.reserve(inputs_.size() + count);
  while (!bytes.empty()) {
    const char* begin = bytes.data();
    const bool is_bytes = (*begin & 7) == kBytes;
    if (!TakeField(&bytes, &number, &content)) return false;
    if (number == kNodeOfGraph) {
      if (!is_bytes || !AddFromNode(content)) return false;
    } else {
      rest->append(begin, static_cast<size_t>(bytes.data() - begin));
    }
  }
  return true;
}

}  // namespace headrace
