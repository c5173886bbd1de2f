#include "op/resolved_op.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_join.h"
#include "base/fork_mutex.h"
#include "base/hash_map.h"
#include "op/anonymous.h"
#include "op/kernel.h"
#include "op/op_text.h"
#include "op/registry.h"

namespace headrace {
namespace {

std::string TypeNames(const std::vector<DType>& types) {
  return absl::StrJoin(types, ", ", [](std::string* out, DType d) {
    absl::StrAppend(out, DTypeName(d));
  });
}

// What follows in messages about an attribute's value.
std::string NodeText(const OpDef& def) {
  return absl::StrCat("\n\t; NodeDef: {{node ", def.name, "}}; ",
                      OpDefSummary(def));
}

Status CheckAllowedType(const OpDef& def, const AttrDef& attr, DType d) {
  if (attr.allowed_types.empty()) return OkStatus();
  for (DType ok : attr.allowed_types) {
    if (ok == BaseType(d)) return OkStatus();
  }
  return InvalidArgument("Value for attr '", attr.name, "' of ", DTypeName(d),
                         " is not in the list of allowed values: ",
                         TypeNames(attr.allowed_types), NodeText(def));
}

Status CheckString(const OpDef& def, const AttrDef& attr,
                   const std::string& s) {
  if (attr.allowed_strings.empty()) return OkStatus();
  for (const std::string& ok : attr.allowed_strings) {
    if (ok == s) return OkStatus();
  }
  return InvalidArgument("Value for attr '", attr.name, "' of \"", s,
                         "\" is not in the list of allowed values: \"",
                         absl::StrJoin(attr.allowed_strings, "\", \""), "\"",
                         NodeText(def));
}

struct ListLength {
  int64_t operator()(const auto&) const { return -1; }
  template <typename T>
  int64_t operator()(const std::vector<T>& v) const {
    return static_cast<int64_t>(v.size());
  }
};

Status CheckMinimum(const OpDef& def, const AttrDef& attr,
                    const AttrValue& value) {
  if (!attr.has_minimum) return OkStatus();
  int64_t n;
  if (const int64_t* v = std::get_if<int64_t>(&value)) {
    n = *v;
    if (n >= attr.minimum) return OkStatus();
    return InvalidArgument("Value for attr '", attr.name, "' of ", n,
                           " must be at least minimum ", attr.minimum,
                           NodeText(def));
  }
  n = std::visit(ListLength{}, static_cast<const AttrValue::variant&>(value));
  if (n >= attr.minimum) return OkStatus();
  return InvalidArgument("Length for attr '", attr.name, "' of ", n,
                         " must be at least minimum ", attr.minimum,
                         NodeText(def));
}

// The one count that all list inputs of unknown length share, or -1.
int SharedCount(const OpDef& def, int total, const AttrMap& attrs) {
  int lists = 0;
  for (const ArgDef& arg : def.inputs) {
    if (!arg.is_list()) {
      --total;
    } else if (const auto* n = attrs.Get<int64_t>(arg.number_attr)) {
      total -= static_cast<int>(*n);
    } else if (const auto* l =
                   attrs.Get<std::vector<DType>>(arg.type_list_attr)) {
      total -= static_cast<int>(l->size());
    } else {
      ++lists;
    }
  }
  if (lists == 0) return total == 0 ? 0 : -1;
  return total >= 0 && total % lists == 0 ? total / lists : -1;
}

struct Key {
  const OpDef* def;
  std::vector<DType> types;
  AttrMap attrs;
  bool operator==(const Key& o) const {
    return def == o.def && types == o.types && attrs == o.attrs;
  }
  template <typename H>
  friend H AbslHashValue(H h, const Key& k) {
    for (DType d : k.types) h = H::combine(std::move(h), static_cast<int>(d));
    return H::combine(std::move(h), k.def, k.attrs.Hash());
  }
};

// Bounded: programs that ask with ever new attributes (op seeds) must not
// grow it for ever.
constexpr size_t kMostInterned = 8192;
std::atomic<uint64_t> epoch{1};
struct InternedOps {
  ProcessMutex mutex;
  HashMap<Key, ResolvedOpPtr> by_key ABSL_GUARDED_BY(mutex);
};
InternedOps& Interned() {
  static auto* ops = new InternedOps;
  return *ops;
}

// Asked once, or hardly more often: what holds a tensor, names a gradient that
// one trace made, or a resource, which each load of a model has for itself.
bool IsOneOfAKind(const AttrMap& attrs) {
  for (const auto& [name, value] : attrs) {
    if (value.kind() == AttrKind::kTensor ||
        value.kind() == AttrKind::kTensorList || name == "_gradient_op_type") {
      return true;
    }
    if (name == "shared_name") {
      const auto* resource = std::get_if<std::string>(&value);
      if (resource && !resource->empty() && *resource != kAnonymousName)
        return true;
    }
  }
  return false;
}

}  // namespace

ResolvedOp::ResolvedOp() = default;
ResolvedOp::~ResolvedOp() = default;

StatusOr<Kernel*> ResolvedOp::BindEagerKernel() const {
  MutexLock lock(bind_mutex_);
  if (!owned_kernel_) {
    HR_ASSIGN_OR_RETURN(owned_kernel_, BindKernel(*this));
    // Released behind the kernel's making: readers take it without the lock.
    eager_kernel_.store(owned_kernel_.get(), std::memory_order_release);
  }
  return owned_kernel_.get();
}

ArgRange ResolvedOp::input_range(StringView name) const {
  int i = def_->FindInput(name);
  return i < 0 ? ArgRange{} : input_ranges_[i];
}

void ResolvedOp::MissingAttr(StringView name) const {
  std::fprintf(stderr,
               "headrace: op %s asks for its attr %.*s of the wrong "
               "kind\n",
               def_->name.c_str(), static_cast<int>(name.size()), name.data());
  std::abort();
}

Status ResolvedOp::InferAttrs(absl::Span<const DType> input_types) {
  int total = static_cast<int>(input_types.size());
  int count = SharedCount(*def_, total, attrs_);
  int at = 0;
  auto bad_count = [&] {
    return InvalidArgument("Op ", name(), " expects ", def_->inputs.size(),
                           " inputs (lists counted once), but was given ",
                           total);
  };
  for (const ArgDef& arg : def_->inputs) {
    int n = 1;
    if (arg.is_list()) {
      n = count;
      if (const auto* v = attrs_.Get<int64_t>(arg.number_attr)) {
        n = static_cast<int>(*v);
      } else if (const auto* l =
                     attrs_.Get<std::vector<DType>>(arg.type_list_attr)) {
        n = static_cast<int>(l->size());
      }
    }
    if (n < 0 || at + n > total) return bad_count();
    input_ranges_.push_back({at, at + n});
    // Where the op does not take a reference itself it gets the value.
    for (int i = at; i < at + n && !arg.is_ref; ++i)
      input_types_[i] = BaseType(input_types_[i]);
    if (!arg.number_attr.empty()) {
      attrs_.Set(arg.number_attr, int64_t{n});
    }
    if (!arg.type_list_attr.empty()) {
      std::vector<DType> types;
      for (int i = at; i < at + n; ++i)
        types.push_back(BaseType(input_types[i]));
      const auto* given = attrs_.Get<std::vector<DType>>(arg.type_list_attr);
      if (given && *given != types) {
        return InvalidArgument("Op ", name(), ": input '", arg.name,
                               "' has types [", TypeNames(types), "], attr '",
                               arg.type_list_attr, "' says [",
                               TypeNames(*given), "]");
      }
      attrs_.Set(arg.type_list_attr, types);
    } else if (!arg.type_attr.empty()) {
      for (int i = at; i < at + n; ++i) {
        DType d = BaseType(input_types[i]);
        const DType* known = attrs_.Get<DType>(arg.type_attr);
        if (known == nullptr) {
          attrs_.Set(arg.type_attr, d);
        } else if (*known != d) {
          return InvalidArgument("cannot compute ", name(), " as input #", i,
                                 "(zero-based) was expected to be a ",
                                 DTypeName(*known), " tensor but is a ",
                                 DTypeName(d), " tensor");
        }
      }
    } else {
      for (int i = at; i < at + n; ++i) {
        if (BaseType(input_types[i]) != arg.type) {
          return InvalidArgument("cannot compute ", name(), " as input #", i,
                                 "(zero-based) was expected to be a ",
                                 DTypeName(arg.type), " tensor but is a ",
                                 DTypeName(input_types[i]), " tensor");
        }
      }
    }
    at += n;
  }
  if (at != total) return bad_count();
  return OkStatus();
}

Status ResolvedOp::CheckAttrs() const {
  for (const AttrDef& attr : def_->attrs) {
    const AttrValue* value = attrs_.Find(attr.name);
    if (value == nullptr) {
      return NotFound("No attr named '", attr.name,
                      "' in NodeDef:\n\t [[{{node ", name(), "}}]]");
    }
    // What calls of a function decide is filled in before nodes are made: an op
    // that is resolved has values.
    if (const auto* open = std::get_if<AttrPlaceholder>(value)) {
      return InvalidArgument("AttrValue must not be a placeholder ('",
                             open->name, "')\n\t for attr '", attr.name, "'",
                             NodeText(*def_));
    }
    if (value->kind() != attr.kind) {
      return InvalidArgument(
          "AttrValue had value with type '", AttrKindName(value->kind()),
          "' when '", AttrKindName(attr.kind), "' expected\n\t for attr '",
          attr.name, "'", NodeText(*def_));
    }
    HR_RETURN_IF_ERROR(CheckMinimum(*def_, attr, *value));
    if (const auto* d = std::get_if<DType>(value)) {
      HR_RETURN_IF_ERROR(CheckAllowedType(*def_, attr, *d));
    } else if (const auto* s = std::get_if<std::string>(value)) {
      HR_RETURN_IF_ERROR(CheckString(*def_, attr, *s));
    } else if (const auto* l = std::get_if<std::vector<DType>>(value)) {
      for (DType d : *l) HR_RETURN_IF_ERROR(CheckAllowedType(*def_, attr, d));
    }
  }
  for (const auto& [key, value] : attrs_) {
    // Names that begin with "_" are notes of the system's own (_class,
    // _output_shapes), which any node may have.
    if (key[0] != '_' && def_->FindAttr(key) == nullptr) {
      return InvalidArgument("Op ", name(), " has no attr '", key, "'");
    }
  }
  return OkStatus();
}

Status ResolvedOp::SetTypes() {
  for (const ArgDef& arg : def_->outputs) {
    int begin = static_cast<int>(output_types_.size());
    if (!arg.type_list_attr.empty()) {
      const auto& types = attr<std::vector<DType>>(arg.type_list_attr);
      output_types_.insert(output_types_.end(), types.begin(), types.end());
    } else {
      DType d = arg.type_attr.empty() ? arg.type : type_attr(arg.type_attr);
      if (arg.is_ref) d = RefType(d);
      int64_t n = arg.number_attr.empty() ? 1 : int_attr(arg.number_attr);
      // Graphs from outside name counts: a million outputs are more than any
      // has, and few enough to have vectors for.
      if (n < 0 || n > (1 << 20)) {
        return InvalidArgument("Op ", name(), " cannot have ", n, " outputs '",
                               arg.name, "'");
      }
      output_types_.insert(output_types_.end(), n, d);
    }
    output_ranges_.push_back({begin, static_cast<int>(output_types_.size())});
  }
  return OkStatus();
}

void ForgetResolvedOps() {
  InternedOps& ops = Interned();
  MutexLock lock(ops.mutex);
  ops.by_key.clear();
  epoch.fetch_add(1, std::memory_order_release);
}

uint64_t ResolvedOpEpoch() { return epoch.load(std::memory_order_acquire); }

[[gnu::hot]] StatusOr<ResolvedOpPtr> ResolveOp(
    const OpDef& def, absl::Span<const DType> input_types,
    const AttrMap& attrs) {
  // Calls of functions are not shared: their kernels hold the functions.
  // The lock is held for the look-up alone. Two threads may resolve the same op
  // at once; the first one entered stays, both work.
  bool intern = !IsOneOfAKind(attrs) && !CallsFunctions(def);
  InternedOps& interned = Interned();
  Key key;
  if (intern) {
    key = Key{&def, {input_types.begin(), input_types.end()}, attrs};
    MutexLock lock(interned.mutex);
    auto it = interned.by_key.find(key);
    if (it != interned.by_key.end()) return it->second;
  }
  auto op = std::make_shared<ResolvedOp>();
  op->def_ = &def;
  op->attrs_ = attrs;
  op->input_types_.assign(input_types.begin(), input_types.end());
  HR_RETURN_IF_ERROR(op->InferAttrs(input_types));
  for (const AttrDef& attr : def.attrs) {
    if (attr.has_default && op->attrs_.Find(attr.name) == nullptr) {
      op->attrs_.Set(attr.name, attr.default_value);
    }
  }
  HR_RETURN_IF_ERROR(op->CheckAttrs());
  HR_RETURN_IF_ERROR(op->SetTypes());
  if (intern) {
    MutexLock lock(interned.mutex);
    // All at once: what is used is resolved again in microseconds, and those
    // who hold an op keep it. An order of use would cost every look-up.
    if (interned.by_key.size() >= kMostInterned) interned.by_key.clear();
    interned.by_key.emplace(std::move(key), op);
  }
  return ResolvedOpPtr(std::move(op));
}

}  // namespace headrace
