// NodeDefs as importing sees them: texts that point into the GraphDef, and
// attributes that are read only where no node before had the same.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/status.h"

namespace tensorflow {
class NodeDef;
}

namespace headrace {

struct NodeText {
  StringView name, op, device;
  int first_input = 0, num_inputs = 0;
  StringView attrs;  // the attributes' wire form
  StringView bytes;  // the whole node's; empty when there is a `def`
  const tensorflow::NodeDef* def = nullptr;
};

// Points into what it was made of.
class NodeTexts {
 public:
  void Add(const tensorflow::NodeDef& def);
  // Takes the nodes out of a GraphDef's wire form; `rest` becomes the wire form
  // of all else. False for bytes that are better left to a full parser (no
  // GraphDef, parts of a node in an unusual order, text that is not ASCII);
  // then nothing is of use.
  bool AddFromGraph(StringView bytes, std::string* rest);

  absl::Span<const NodeText> nodes() const { return nodes_; }
  absl::Span<const StringView> inputs_of(const NodeText& n) const {
    return absl::MakeConstSpan(inputs_).subspan(n.first_input, n.num_inputs);
  }

 private:
  bool AddFromNode(StringView bytes);

  std::vector<NodeText> nodes_;
  std::vector<StringView> inputs_;
};

}  // namespace headrace
