// From a NodeDef's op and attributes to a resolved op, once for nodes alike.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "graph/attr_proto.h"
#include "graph/builder.h"
#include "graph/node_importer.h"
#include "op/op_text.h"
#include "op/registry.h"
#include "tensor/tensor_proto.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace headrace {
namespace {

using tensorflow::NodeDef;

// Counts come from the file: a million inputs are more than any node has, and
// few enough to make lists of.
constexpr int64_t kMostInputs = 1 << 20;
// Bytes of attributes that are looked up for nodes alike: longer ones hold
// tensors or lists that hardly come twice, and hashing them costs.
constexpr size_t kLongestKey = 512;
// Before this producer an empty shape of a placeholder meant any shape.
constexpr int kFirstScalarPlaceholder = 24;

// "...; NodeDef: {{node x}}; Op<...>": where a mistake was made.
Status At(const Status& s, const NodeDef& node, const OpDef& def) {
  StringView text = s.message();
  size_t own = text.find("; Op<name=");
  if (own != StringView::npos) text = text.substr(0, own);
  size_t unnamed = text.find("\n\t; NodeDef:");
  if (unnamed != StringView::npos) text = text.substr(0, unnamed);
  while (absl::ConsumeSuffix(&text, "\n\t")) {
  }
  return Status(s.code(), absl::StrCat(text, "\n\t; NodeDef: {{node ",
                                       node.name(), "}}; ", OpDefSummary(def)));
}

// Appends the types that an input argument stands for; false when an
// attribute is not what the count or type needs.
Status AppendTypes(const ArgDef& arg, const AttrMap& attrs,
                   std::vector<DType>* types) {
  if (!arg.type_list_attr.empty()) {
    const auto* list = attrs.Get<std::vector<DType>>(arg.type_list_attr);
    if (list == nullptr) {
      return InvalidArgument("attr '", arg.type_list_attr,
                             "' is no list of types");
    }
    types->insert(types->end(), list->begin(), list->end());
    return OkStatus();
  }
  DType d = arg.type;
  if (!arg.type_attr.empty()) {
    const DType* given = attrs.Get<DType>(arg.type_attr);
    if (given == nullptr) {
      return InvalidArgument("attr '", arg.type_attr, "' is no type");
    }
    d = *given;
  }
  int64_t n = 1;
  if (!arg.number_attr.empty()) {
    const int64_t* count = attrs.Get<int64_t>(arg.number_attr);
    if (count == nullptr || *count < 0 || *count > kMostInputs) {
      return InvalidArgument("Value for attr '", arg.number_attr, "' of ",
                             count ? *count : 0, " is no count of inputs");
    }
    n = *count;
  }
  types->insert(types->end(), n, arg.is_ref ? RefType(d) : d);
  return OkStatus();
}

bool HasRefTypes(const AttrValue& v) {
  if (const DType* d = std::get_if<DType>(&v)) return IsRef(*d);
  if (const auto* l = std::get_if<std::vector<DType>>(&v)) {
    return std::any_of(l->begin(), l->end(), IsRef);
  }
  return false;
}

int DataInputs(const NodeDef& def) {
  int n = 0;
  for (const std::string& text : def.input()) {
    // Inputs with a caret are control dependencies.
    n += text.empty() || text[0] != '^';
  }
  return n;
}

// One attribute as a part of the key by which nodes alike are found.
void AppendToKey(StringView name, const tensorflow::AttrValue& value,
                 std::string* key) {
  key->push_back('/');
  key->append(name.data(), name.size());
  if (value.value_case() == tensorflow::AttrValue::kType) {  // most are
    const int type = value.type();
    key->push_back('@');
    key->append(reinterpret_cast<const char*>(&type), sizeof type);
    return;
  }
  // The length makes the end of each part certain: no two lists of attributes
  // have one key.
  absl::StrAppend(key, "=", value.ByteSizeLong(), ":");
  value.AppendToString(key);
}

}  // namespace

Status NodeImporter::ReadAttrs(const NodeDef& node, OpUse* use) {
  const OpDef& def = *use->def;
  for (const auto& [name, proto] : node.attr()) {
    const AttrDef* attr = def.FindAttr(name);
    // Attributes that this library does not know are of a later one, which
    // promises that leaving them out is harmless.
    if (attr == nullptr && (name.empty() || name[0] != '_')) continue;
    StatusOr<AttrValue> value =
        AttrFromProto(proto, attr ? attr->kind : AttrKind::kNone);
    // Placeholders belong to function definitions with attributes, which are
    // filled in before nodes are made.
    if (value.ok() && value->kind() == AttrKind::kPlaceholder) {
      value = InvalidArgument("AttrValue must not be a placeholder ('",
                              proto.placeholder(), "')");
    }
    if (value.ok() && HasRefTypes(*value)) {
      value = InvalidArgument("AttrValue must not have reference type value");
    }
    if (!value.ok()) {
      return At(Status(value.status().code(),
                       absl::StrCat(value.status().message(), "\n\t for attr '",
                                    name, "'")),
                node, def);
    }
    use->attrs.Set(name, *std::move(value));
  }
  for (const AttrDef& attr : def.attrs) {
    if (use->attrs.Find(attr.name)) continue;
    if (!attr.has_default) {
      return InvalidArgument("NodeDef missing attr '", attr.name, "' from ",
                             OpDefSummary(def), "; NodeDef: {{node ",
                             node.name(), "}}");
    }
    use->attrs.Set(attr.name, attr.default_value);
  }
  // (Where a shape need not be given, a scalar's meant then that it was not.)
  if (producer_ < kFirstScalarPlaceholder && def.Is(OpRole::kPlaceholder) &&
      def.FindAttr("shape")->has_default) {
    const Shape* s = use->attrs.Get<Shape>("shape");
    if (s && s->IsScalar()) use->attrs.Set("shape", Shape::UnknownRank());
  }
  return OkStatus();
}

Status NodeImporter::MakeUse(const NodeDef& node, OpUse* use) {
  use->def = FindOp(node.op());
  if (use->def == nullptr) {
    FunctionPtr f = functions_ ? functions_->Find(node.op()) : nullptr;
    if (f) return MakeCall(node, std::move(f), use);
    return NotFound(
        LookUpOp(node.op()).status().message(),
        " Note that if you are loading a saved graph which used ops from "
        "tf.contrib (e.g. `tf.contrib.resampler`), accessing should be done "
        "before importing the graph, as contrib ops are lazily registered when "
        "the module is first accessed.");
  }
  const OpDef& def = *use->def;
  if (def.deprecation.version > 0 && producer_ >= def.deprecation.version) {
    return Unimplemented(
        "Op ", def.name, " is not available in GraphDef version ", producer_,
        ". It has been removed in version ", def.deprecation.version, ". ",
        def.deprecation.explanation, ".");
  }
  HR_RETURN_IF_ERROR(ReadAttrs(node, use));
  for (const ArgDef& arg : def.inputs) {
    Status s = AppendTypes(arg, use->attrs, &use->expected);
    if (!s.ok()) return At(s, node, def);
    if (use->expected.size() > kMostInputs) {
      return At(InvalidArgument("too many inputs"), node, def);
    }
  }
  if (static_cast<int>(use->expected.size()) != DataInputs(node)) {
    std::string types = absl::StrJoin(
        use->expected, ", ",
        [](std::string* out, DType d) { absl::StrAppend(out, DTypeName(d)); });
    return InvalidArgument("NodeDef expected inputs '", types,
                           "' do not match ", DataInputs(node),
                           " inputs specified; ", OpDefSummary(def),
                           "; NodeDef: {{node ", node.name(), "}}");
  }
  StatusOr<ResolvedOpPtr> op = ResolveOp(def, use->expected, use->attrs);
  if (!op.ok()) return At(op.status(), node, def);
  use->op = *std::move(op);
  return OkStatus();
}

// A node whose op is a function of the library: a call of it.
Status NodeImporter::MakeCall(const NodeDef& node, FunctionPtr function,
                              OpUse* use) {
  const Function& f = *function;
  HR_ASSIGN_OR_RETURN(use->op, CallOf(f));
  use->def = &use->op->def();
  use->attrs = use->op->attrs();
  use->expected = f.arg_types();
  if (static_cast<int>(use->expected.size()) != DataInputs(node)) {
    return InvalidArgument("Node '", node.name(), "' calls function ", f.name,
                           " with ", DataInputs(node), " inputs, it takes ",
                           use->expected.size());
  }
  use->function = std::move(function);
  return OkStatus();
}

StatusOr<const OpUse*> NodeImporter::Unshared(const NodeDef& node) {
  last_unshared_ = std::make_unique<OpUse>();
  HR_RETURN_IF_ERROR(MakeUse(node, last_unshared_.get()));
  return last_unshared_.get();
}

StatusOr<const OpUse*> NodeImporter::UseOf(const NodeText& text) {
  if (text.def) return UseOfDef(*text.def);
  const bool small = text.attrs.size() <= kLongestKey;
  if (small) {
    int inputs = 0;
    for (StringView in : texts_->inputs_of(text)) {
      inputs += in.empty() || in[0] != '^';
    }
    key_.assign(text.op.data(), text.op.size());
    key_.push_back('\0');  // no such key is one of UseOfDef
    key_.append(reinterpret_cast<const char*>(&inputs), sizeof inputs);
    key_.append(text.attrs.data(), text.attrs.size());
    // Nodes alike mostly follow one another.
    if (last_use_ && key_ == last_key_) return last_use_;
    auto it = uses_.find(key_);
    if (it != uses_.end()) {
      last_key_ = key_;
      last_use_ = it->second.get();
      return last_use_;
    }
  }
  NodeDef def;
  if (!def.ParseFromArray(text.bytes.data(),
                          static_cast<int>(text.bytes.size()))) {
    return InvalidArgument("Invalid GraphDef");
  }
  bool shared = small;
  for (const auto& entry : def.attr()) {
    // Each constant is one of a kind: keeping it in the table would hold its
    // bytes until the import ends.
    shared = shared && !entry.second.has_tensor();
  }
  if (!shared) return Unshared(def);
  auto use = std::make_unique<OpUse>();
  HR_RETURN_IF_ERROR(MakeUse(def, use.get()));
  last_key_ = key_;
  last_use_ = use.get();
  uses_.emplace(key_, std::move(use));
  return last_use_;
}

StatusOr<const OpUse*> NodeImporter::UseOfDef(const NodeDef& node) {
  key_.assign(node.op());
  // Sorting more attributes for a key costs more than reading them.
  bool shared = node.attr().size() <= 16;
  absl::InlinedVector<std::pair<StringView, const tensorflow::AttrValue*>, 8>
      sorted;
  if (shared) {
    for (const auto& entry : node.attr()) {
      if (entry.second.has_tensor()) shared = false;
      sorted.push_back({entry.first, &entry.second});
    }
  }
  if (!shared) return Unshared(node);
  // Protobuf's maps have no order.
  if (sorted.size() > 1) {
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
  }
  absl::StrAppend(&key_, "/", DataInputs(node));
  for (const auto& [name, value] : sorted) {
    AppendToKey(name, *value, &key_);
  }
  auto it = uses_.find(key_);
  if (it != uses_.end()) return it->second.get();
  auto use = std::make_unique<OpUse>();
  HR_RETURN_IF_ERROR(MakeUse(node, use.get()));
  const OpUse* made = use.get();
  uses_.emplace(key_, std::move(use));
  return made;
}

}  // namespace headrace
