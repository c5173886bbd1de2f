#include "cc/safe_mode.h"

#include <cmath>

#include "cc/access.h"
#include "headrace/error.h"

namespace headrace::tf {

using internal::Check;

namespace {

void AddOps(const std::vector<std::string>& from,
            std::set<std::string, std::less<>>* to) {
  for (const std::string& name : from) {
    if (!MayNameOp(name)) {
      throw Error(ErrorCode::kInvalidArgument,
                  "'" + name + "' is no name of an op");
    }
    to->insert(name);
  }
}

int64_t NotNegative(const char* what, int64_t n) {
  if (n >= 0) return n;
  throw Error(ErrorCode::kInvalidArgument,
              std::string("the limit ") + what + " is negative");
}

SafetyPolicy PolicyOf(const SafeMode& mode) {
  SafetyPolicy p;
  for (const std::string& word : mode.allow) Check(p.Allow(word));
  AddOps(mode.deny, &p.denied_ops);
  AddOps(mode.only, &p.only_ops);
  p.memory = NotNegative("memory", mode.memory);
  p.nodes = NotNegative("nodes", mode.nodes);
  p.recursion = NotNegative("recursion", mode.recursion);
  p.output = NotNegative("output", mode.output);
  // Of 95 years, as any clock can tell.
  if (!(mode.seconds >= 0 && mode.seconds <= 3e9)) {
    throw Error(ErrorCode::kInvalidArgument,
                "the limit seconds is no number between 0 and 3e9");
  }
  p.time_ns = std::llround(mode.seconds * 1e9);
  return p;
}

}  // namespace

SandboxPtr internal::SandboxOf(const SafeMode& mode, std::string whose) {
  return Check(MakeSandbox(PolicyOf(mode), std::move(whose)));
}

SafeMode SafeMode::FromText(const std::string& text) {
  const SafetyPolicy p = Check(SafetyPolicy::Parse(text));
  SafeMode mode;
  mode.allow.assign(p.allowed_ops.begin(), p.allowed_ops.end());
  for (int i = 0; i < kReaches; ++i) {
    const auto reach = static_cast<Reach>(i);
    if (p.allowed.Has(reach)) mode.allow.push_back(WordOf(reach));
  }
  mode.deny.assign(p.denied_ops.begin(), p.denied_ops.end());
  mode.only.assign(p.only_ops.begin(), p.only_ops.end());
  mode.memory = p.memory;
  mode.seconds = static_cast<double>(p.time_ns) / 1e9;
  mode.nodes = p.nodes;
  mode.recursion = p.recursion;
  mode.output = p.output;
  return mode;
}

std::string SafeMode::ToText() const { return PolicyOf(*this).ToString(); }

struct SafeMode::Scope::State {
  explicit State(SandboxPtr box) : sandbox(std::move(box)), scope(sandbox) {}
  const SandboxPtr sandbox;
  const SandboxScope scope;
};

SafeMode::Scope::Scope(const SafeMode& mode)
    : state_(std::make_unique<State>(
          internal::SandboxOf(mode, "this safe mode"))) {}
SafeMode::Scope::~Scope() = default;

int64_t SafeMode::Scope::memory_in_use() const {
  return state_->sandbox->memory();
}

}  // namespace headrace::tf
