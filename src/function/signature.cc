#include "function/signature.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace headrace {
namespace {

constexpr int kUnknownRank = 255;

uint64_t TagOf(uint64_t token) { return token >> 56; }
uint64_t LowOf(uint64_t token) { return token & ((uint64_t{1} << 56) - 1); }
bool HasShape(uint64_t tag) {
  return tag == Signature::kTensor || tag == Signature::kHandle ||
         tag == Signature::kVariable;
}
int RankOf(uint64_t token) { return static_cast<int>(token & 0xff); }

// Behind the item that begins at `at`.
size_t EndOfItem(TokenSpan tokens, size_t at) {
  const uint64_t tag = TagOf(tokens[at]), low = LowOf(tokens[at]);
  if (HasShape(tag)) {
    const int rank = RankOf(tokens[at]);
    return at + 1 + (rank == kUnknownRank ? 0 : rank) +
           (tag == Signature::kVariable);
  }
  if (tag == Signature::kInt || tag == Signature::kFloat) return at + 2;
  if (tag == Signature::kText) return at + 1 + (low + 7) / 8;
  return at + 1;
}

Shape ReadShape(TokenSpan tokens, size_t at) {
  const int rank = RankOf(tokens[at]);
  if (rank == kUnknownRank) return Shape::UnknownRank();
  Shape shape;
  for (int i = 0; i < rank; ++i) {
    shape.AddDim(static_cast<int64_t>(tokens[at + 1 + i]));
  }
  return shape;
}

DType ReadDType(uint64_t token) {
  return static_cast<DType>(LowOf(token) >> 16);
}

bool SameItem(TokenSpan a, size_t at_a, TokenSpan b, size_t at_b) {
  const size_t n = EndOfItem(a, at_a) - at_a;
  return n == EndOfItem(b, at_b) - at_b &&
         std::equal(a.begin() + at_a, a.begin() + at_a + n, b.begin() + at_b);
}

// Both items are a tensor of one dtype.
bool AreTensors(uint64_t a, uint64_t b) {
  return TagOf(a) == Signature::kTensor && TagOf(b) == Signature::kTensor &&
         ReadDType(a) == ReadDType(b);
}

bool IsAtMost(const Shape& general, const Shape& special) {
  if (!general.known_rank()) return true;
  if (general.rank() != special.rank()) return false;
  for (int i = 0; i < general.rank(); ++i) {
    if (general[i] >= 0 && general[i] != special[i]) return false;
  }
  return true;
}

Shape JoinShapes(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return Shape::UnknownRank();
  Shape joined = a;
  for (int i = 0; i < a.rank(); ++i) {
    if (a[i] != b[i]) joined.set_dim(i, Shape::kUnknown);
  }
  return joined;
}

}  // namespace

[[gnu::hot]] void Signature::AddShape(Tag tag, DType dtype,
                                      const Shape& shape) {
  const int rank = shape.rank();
  tokens_.push_back(Token(
      tag, static_cast<uint64_t>(dtype) << 16 | static_cast<uint8_t>(rank)));
  for (int i = 0; i < rank; ++i) tokens_.push_back(shape[i]);
}

[[gnu::hot]] void Signature::AddTensor(const Value& v) {
  AddShape(kTensor, v.dtype(), v.shape());
  leaves_.push_back(v);
  // What lies behind a handle is part of the signature: bodies are traced for
  // its dtype and shape.
  if (v.dtype() != DType::kResource && v.dtype() != DType::kVariant) return;
  const HandleData* behind = v.handle_data();
  if (behind == nullptr) return;
  for (const auto& part : *behind) AddShape(kHandle, part.dtype, part.shape);
}

void Signature::AddVariable(const Value& handle, DType dtype,
                            const Shape& shape, bool trainable) {
  AddShape(kVariable, dtype, shape);
  // Which arguments are the same variable, not which variable it is: a trace
  // fits other variables, unless two of them coincide where they did not.
  const auto at = std::find(variables_.begin(), variables_.end(), handle.id());
  tokens_.push_back(uint64_t{trainable} << 32 |
                    static_cast<uint64_t>(at - variables_.begin()));
  if (at == variables_.end()) variables_.push_back(handle.id());
  leaves_.push_back(handle);
}

void Signature::AddInt(int64_t v) {
  AddToken(Token(kInt, 0));
  AddToken(static_cast<uint64_t>(v));
}

void Signature::AddFloat(double v) {
  AddToken(Token(kFloat, 0));
  AddToken(std::bit_cast<uint64_t>(v));
}

void Signature::AddText(StringView text) {
  AddToken(Token(kText, text.size()));
  for (size_t i = 0; i < text.size(); i += 8) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, text.data() + i, std::min<size_t>(8, text.size() - i));
    AddToken(bytes);
  }
}

size_t BehindItem(TokenSpan tokens, size_t at) {
  const bool is_tensor = TagOf(tokens[at]) == Signature::kTensor;
  at = EndOfItem(tokens, at);
  while (is_tensor && at < tokens.size() &&
         TagOf(tokens[at]) == Signature::kHandle) {
    at = EndOfItem(tokens, at);
  }
  return at;
}

SignatureItem ReadItem(TokenSpan tokens, size_t* at) {
  SignatureItem item;
  const size_t start = *at;
  const uint64_t low = LowOf(tokens[start]);
  item.tag = static_cast<Signature::Tag>(TagOf(tokens[start]));
  *at = EndOfItem(tokens, start);
  item.number = static_cast<int64_t>(low);
  if (HasShape(item.tag)) {
    item.dtype = ReadDType(tokens[start]);
    item.shape = ReadShape(tokens, start);
  }
  if (item.tag == Signature::kVariable) {
    item.trainable = tokens[*at - 1] >> 32;
    item.number = static_cast<int64_t>(tokens[*at - 1] & 0xffffffff);
  } else if (item.tag == Signature::kTensor) {
    HandleData behind;
    while (*at < tokens.size() && TagOf(tokens[*at]) == Signature::kHandle) {
      behind.push_back({ReadDType(tokens[*at]), ReadShape(tokens, *at)});
      *at = EndOfItem(tokens, *at);
    }
    if (!behind.empty()) {
      item.behind = std::make_shared<const HandleData>(std::move(behind));
    }
  } else if (item.tag == Signature::kInt) {
    item.number = static_cast<int64_t>(tokens[start + 1]);
  } else if (item.tag == Signature::kFloat) {
    item.real = std::bit_cast<double>(tokens[start + 1]);
  } else if (item.tag == Signature::kText) {
    item.text.resize(low);
    // Bytes lie eight a token, in the order of memory.
    std::memcpy(item.text.data(), tokens.data() + start + 1, low);
  }
  return item;
}

bool Serves(TokenSpan general, TokenSpan special) {
  size_t a = 0, b = 0;
  while (a < general.size() && b < special.size()) {
    const bool serves =
        AreTensors(general[a], special[b])
            ? IsAtMost(ReadShape(general, a), ReadShape(special, b))
            : SameItem(general, a, special, b);
    if (!serves) return false;
    a = EndOfItem(general, a);
    b = EndOfItem(special, b);
  }
  return a == general.size() && b == special.size();
}

std::optional<Tokens> Join(TokenSpan first, TokenSpan second) {
  Signature joined;
  size_t a = 0, b = 0;
  while (a < first.size() && b < second.size()) {
    const size_t end = EndOfItem(first, a);
    if (AreTensors(first[a], second[b])) {
      joined.AddSpec(ReadDType(first[a]),
                     JoinShapes(ReadShape(first, a), ReadShape(second, b)));
    } else if (SameItem(first, a, second, b)) {
      for (size_t i = a; i < end; ++i) joined.AddToken(first[i]);
    } else {
      return std::nullopt;
    }
    a = end;
    b = EndOfItem(second, b);
  }
  if (a != first.size() || b != second.size()) return std::nullopt;
  return Tokens(joined.tokens().begin(), joined.tokens().end());
}

}  // namespace headrace
