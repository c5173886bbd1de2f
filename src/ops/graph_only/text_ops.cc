#include "ops/graph_only/text_ops.h"

#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace headrace {
namespace {

// By name; filled at start alone.
std::map<StringView, const TextOp*>& TextOps() {
  static auto* ops = new std::map<StringView, const TextOp*>;
  return *ops;
}

std::vector<std::string> ListOf(StringView text) {
  return absl::StrSplit(text, "; ", absl::SkipEmpty());
}

// The shapes of one call, by the texts of its op.
class ShapesByText {
 public:
  explicit ShapesByText(ShapeContext& c) : c_(c) {}

  Status Take(int input, int member, StringView text) {
    const Shape& shape = c_.input(input);
    if (text == "*") return OkStatus();
    const auto sizes = SizesOf(text);
    HR_RETURN_IF_ERROR(CheckRank(shape, static_cast<int>(sizes.size())));
    for (size_t i = 0; shape.known_rank() && i < sizes.size(); ++i) {
      HR_RETURN_IF_ERROR(TakeSize(NameOf(sizes[i], member), shape[i]));
    }
    return OkStatus();
  }
  Shape Give(int member, StringView text) const {
    std::vector<int64_t> dims;
    for (const StringView size : SizesOf(text)) {
      int64_t sum = 0;
      for (const StringView part : absl::StrSplit(size, '+')) {
        const int64_t known = Known(NameOf(part, member));
        sum = sum < 0 || known < 0 ? -1 : sum + known;
      }
      dims.push_back(sum);
    }
    return Shape(dims);
  }

 private:
  static std::vector<StringView> SizesOf(StringView text) {
    if (text == ".") return {};
    return absl::StrSplit(text, ' ');
  }
  static std::string NameOf(StringView size, int member) {
    if (size.back() != '#') return std::string(size);
    return absl::StrCat(size, member);
  }
  // -1 where it is not.
  int64_t Known(const std::string& size) const {
    int64_t number = 0;
    if (size[0] == '@') return c_.op().int_attr(size.substr(1));
    if (absl::SimpleAtoi(size, &number)) return number;
    const auto at = sizes_.find(size);
    return at == sizes_.end() ? -1 : at->second;
  }
  Status TakeSize(const std::string& name, int64_t size) {
    if (name == "?" || size < 0) return OkStatus();
    const int64_t known = Known(name);
    if (known < 0) {
      sizes_[name] = size;
    } else if (known != size) {
      return c_.Refuse(DimensionsDiffer(size, known),
                       InvalidArgument("Dimensions must be equal, but are ",
                                       size, " and ", known));
    }
    return OkStatus();
  }

  ShapeContext& c_;
  std::map<std::string, int64_t> sizes_;
};

Status RuleOfTexts(ShapeContext& c) {
  const TextOp& op = *TextOps().at(c.op().name());
  const OpDef& def = c.op().def();
  ShapesByText shapes(c);
  const auto inputs = ListOf(op.input_shapes);
  for (size_t a = 0; a < inputs.size(); ++a) {
    const ArgRange range = c.op().input_range(def.inputs[a].name);
    for (int i = range.begin; i < range.end; ++i) {
      HR_RETURN_IF_ERROR(shapes.Take(i, i - range.begin, inputs[a]));
    }
  }
  const auto outputs = ListOf(op.output_shapes);
  for (size_t a = 0; a < outputs.size(); ++a) {
    const ArgRange range = c.op().output_range(static_cast<int>(a));
    if (outputs[a] == "*") continue;
    for (int i = range.begin; i < range.end; ++i) {
      c.set_output(i, shapes.Give(i - range.begin, outputs[a]));
    }
  }
  return OkStatus();
}

}  // namespace

OpBuilder DefinitionOf(const TextOp& op) {
  TextOps()[op.name] = &op;
  OpBuilder b(op.name);
  for (const std::string& arg : ListOf(op.inputs)) b.Input(arg.c_str());
  for (const std::string& arg : ListOf(op.outputs)) b.Output(arg.c_str());
  for (const std::string& attr : ListOf(op.attrs)) b.Attr(attr.c_str());
  if (op.stateful) b.Stateful();
  b.Doc(op.doc).Shape(RuleOfTexts);
  return b;
}

bool RegisterTextOps(absl::Span<const TextOp> ops) {
  for (const TextOp& op : ops) DefinitionOf(op).Register();
  return true;
}

}  // namespace headrace
