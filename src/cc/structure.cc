#include "cc/structure.h"

#include "op/emitter.h"

namespace headrace::tf::internal {

void Parts::AddTensor(const Tensor& t) {
  signature_->AddTensor(Access::ValueOf(t));
}

void Parts::AddVariable(const Variable& v) {
  const Value& handle = Access::ValueOf(v.handle());
  // Tapes watch a variable that is passed, as they watch one that is read.
  if (v.trainable() && HasRecorders()) TellVariableAccessed(handle);
  signature_->AddVariable(handle, Core(v.dtype()), Core(v.shape()),
                          v.trainable());
}

void Parts::AddSpec(const TensorSpec& s) {
  signature_->AddSpec(Core(s.dtype), Core(s.shape));
}
void Parts::AddNone() { signature_->AddNone(); }
void Parts::AddBool(bool v) { signature_->AddBool(v); }
void Parts::AddInt(int64_t v) { signature_->AddInt(v); }
void Parts::AddFloat(double v) { signature_->AddFloat(v); }
void Parts::AddText(std::string_view v) {
  signature_->AddText({v.data(), v.size()});
}
void Parts::AddTuple(size_t count) {
  signature_->AddStructure(Signature::kTuple, count);
}
void Parts::AddList(size_t count) {
  signature_->AddStructure(Signature::kList, count);
}
void Parts::AddDict(size_t count) {
  signature_->AddStructure(Signature::kDict, count);
}

void Reader::Refuse(const std::string& wanted) const {
  const TokenSpan tokens = source_->tokens;
  if (at_ >= tokens.size()) {
    throw Misread(absl::StrCat("expected ", wanted, " behind the last ",
                               source_->is_call ? "argument" : "result"));
  }
  std::string path = source_->is_call ? "the arguments" : "the result";
  for (const SignaturePart& part : source_->is_call
                                       ? PartsOfCall(tokens, source_->names)
                                       : PartsOfResults(tokens)) {
    // The part itself, or the first one of the structure that begins here.
    if (part.at < at_) continue;
    path = part.at == at_ ? part.path : "what holds " + part.path;
    break;
  }
  size_t at = at_;
  throw Misread(absl::StrCat("expected ", wanted, " as ", path, ", got ",
                             TextOf(ReadItem(tokens, &at))));
}

Tensor Reader::TakeTensor() {
  const TokenSpan tokens = source_->tokens;
  if (at_ >= tokens.size()) Refuse("a tensor");
  const Signature::Tag tag = TagAt(tokens, at_);
  if (tag == Signature::kTensor) [[likely]] {
    at_ = BehindItem(tokens, at_);
    return Access::Wrap(source_->values[next_++]);
  }
  if (tag == Signature::kVariable) return TakeVariable().value();
  switch (tag) {  // the dtypes that Python's values become
    case Signature::kBool:
      return Tensor(TakeBool());
    case Signature::kInt:
      return Tensor(static_cast<int32_t>(TakeInt(INT32_MIN, INT32_MAX)));
    case Signature::kFloat:
      return Tensor(static_cast<float>(TakeFloat()));
    case Signature::kText:
      return Tensor(TakeText());
    default:
      Refuse("a tensor");
  }
}

Variable Reader::TakeVariable() {
  if (at_ >= source_->tokens.size() ||
      TagAt(source_->tokens, at_) != Signature::kVariable) {
    Refuse("a variable");
  }
  const SignatureItem item = ReadItem(source_->tokens, &at_);
  return Access::ArgumentOf(Access::Wrap(source_->values[next_++]),
                            Public(item.dtype), Public(item.shape),
                            item.trainable);
}

bool Reader::TakeNone() {
  if (at_ >= source_->tokens.size() ||
      TagAt(source_->tokens, at_) != Signature::kNone) {
    return false;
  }
  ++at_;
  return true;
}

namespace {

bool HasTag(TokenSpan tokens, size_t at, Signature::Tag tag) {
  return at < tokens.size() && TagAt(tokens, at) == tag;
}
bool IsSequence(TokenSpan tokens, size_t at) {
  return HasTag(tokens, at, Signature::kTuple) ||
         HasTag(tokens, at, Signature::kList);
}

}  // namespace

bool Reader::TakeBool() {
  if (!HasTag(source_->tokens, at_, Signature::kBool)) Refuse("a bool");
  return ReadItem(source_->tokens, &at_).number;
}

int64_t Reader::TakeInt(int64_t least, int64_t most) {
  if (!HasTag(source_->tokens, at_, Signature::kInt)) Refuse("an integer");
  size_t behind = at_;
  const int64_t v = ReadItem(source_->tokens, &behind).number;
  if (v < least || v > most) {
    Refuse(absl::StrCat("an integer from ", least, " to ", most));
  }
  at_ = behind;
  return v;
}

double Reader::TakeFloat() {
  if (HasTag(source_->tokens, at_, Signature::kInt)) {
    return static_cast<double>(TakeInt(INT64_MIN, INT64_MAX));
  }
  if (!HasTag(source_->tokens, at_, Signature::kFloat)) Refuse("a number");
  return ReadItem(source_->tokens, &at_).real;
}

std::string Reader::TakeText() {
  if (!HasTag(source_->tokens, at_, Signature::kText)) Refuse("a string");
  return ReadItem(source_->tokens, &at_).text;
}

size_t Reader::TakeSequence() {
  if (!IsSequence(source_->tokens, at_)) Refuse("a tuple or list");
  return static_cast<size_t>(ReadItem(source_->tokens, &at_).number);
}

void Reader::TakeItems(size_t want) {
  size_t behind = at_;
  if (!IsSequence(source_->tokens, at_) ||
      ReadItem(source_->tokens, &behind).number != static_cast<int64_t>(want)) {
    if (source_->is_call && at_ == 0) {
      behind = 0;
      const int64_t n = ReadItem(source_->tokens, &behind).number;
      throw Misread(absl::StrCat("takes ", want, " arguments, got ", n));
    }
    Refuse(absl::StrCat("a tuple or list of ", want));
  }
  at_ = behind;
}

size_t Reader::TakeDict() {
  if (!HasTag(source_->tokens, at_, Signature::kDict)) Refuse("a dict");
  return static_cast<size_t>(ReadItem(source_->tokens, &at_).number);
}

void Reader::TakeFields(size_t want) {
  size_t behind = at_;
  if (!HasTag(source_->tokens, at_, Signature::kDict) ||
      ReadItem(source_->tokens, &behind).number != static_cast<int64_t>(want)) {
    Refuse(absl::StrCat("a dict of ", want));
  }
  at_ = behind;
}

void Reader::TakeKey(std::string_view want) {
  const std::string key = TakeText();
  if (key == want) return;
  throw Misread(absl::StrCat("expected a dict with the key '",
                             std::string(want), "', got one with '", key, "'"));
}

}  // namespace headrace::tf::internal
