#include "c/tstring.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

// The forms are told apart by the first byte, which is the lowest of a size on
// little-endian machines alone.
static_assert(std::endian::native == std::endian::little);

namespace headrace::capi {
namespace {

constexpr int kTypeBits = 2;

TF_TString_Type FormOf(const TF_TString& s) {
  return static_cast<TF_TString_Type>(s.u.raw.raw[0] & TF_TSTR_TYPE_MASK);
}

// One byte more than the capacity, for the zero, is a multiple of 16.
size_t CapacityFor(size_t size) { return ((size + 16) & ~size_t{15}) - 1; }

void Release(TF_TString* s) {
  if (FormOf(*s) == TF_TSTR_LARGE) {
    std::free(s->u.large.ptr);
  } else if (FormOf(*s) == TF_TSTR_VIEW && s->u.view.owner_ref) {
    s->u.view.owner_ref->unref(s->u.view.owner_ref);
  }
  std::memset(s, 0, sizeof *s);
}

}  // namespace

StringView TextOf(const TF_TString& s) {
  switch (FormOf(s)) {
    case TF_TSTR_SMALL:
      // The byte may come from anybody: no more than there is room for.
      return StringView(s.u.smll.str,
                        std::min<size_t>(s.u.smll.size >> kTypeBits,
                                         TF_TString_SmallCapacity));
    case TF_TSTR_LARGE:
      return StringView(s.u.large.ptr, s.u.large.size >> kTypeBits);
    case TF_TSTR_OFFSET:
      return StringView(reinterpret_cast<const char*>(&s) + s.u.offset.offset,
                        s.u.offset.size >> kTypeBits);
    default:
      return StringView(s.u.view.ptr, s.u.view.size >> kTypeBits);
  }
}

Status InitString(TF_TString* s, StringView text) {
  std::memset(s, 0, sizeof *s);
  if (text.size() <= TF_TString_SmallCapacity) {
    s->u.smll.size = static_cast<uint8_t>(text.size() << kTypeBits);
    if (!text.empty()) std::memcpy(s->u.smll.str, text.data(), text.size());
    return OkStatus();
  }
  const size_t capacity = CapacityFor(text.size());
  char* copy = static_cast<char*>(std::malloc(capacity + 1));
  if (copy == nullptr) {
    return ResourceExhausted("no memory for a string of ", text.size(),
                             " bytes");
  }
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  s->u.large.size = text.size() << kTypeBits | TF_TSTR_LARGE;
  s->u.large.cap = capacity;
  s->u.large.ptr = copy;
  return OkStatus();
}

}  // namespace headrace::capi

namespace capi = headrace::capi;

void TF_StringInit(TF_TString* t) { std::memset(t, 0, sizeof *t); }

void TF_StringCopy(TF_TString* dst, const char* src, size_t size) {
  // `src` may lie in what is freed: the copy is made first.
  TF_TString made;
  (void)capi::InitString(&made, headrace::StringView(src, src ? size : 0));
  capi::Release(dst);
  *dst = made;
}

void TF_StringAssignView(TF_TString* dst, const char* src, size_t size) {
  capi::Release(dst);
  dst->u.view.size = size << capi::kTypeBits | TF_TSTR_VIEW;
  dst->u.view.ptr = src;
  dst->u.view.owner_ref = nullptr;
}

const char* TF_StringGetDataPointer(const TF_TString* tstr) {
  return capi::TextOf(*tstr).data();
}

TF_TString_Type TF_StringGetType(const TF_TString* str) {
  return capi::FormOf(*str);
}

size_t TF_StringGetSize(const TF_TString* tstr) {
  return capi::TextOf(*tstr).size();
}

size_t TF_StringGetCapacity(const TF_TString* str) {
  switch (capi::FormOf(*str)) {
    case TF_TSTR_SMALL:
      return TF_TString_SmallCapacity;
    case TF_TSTR_LARGE:
      return str->u.large.cap;
    default:
      return 0;
  }
}

void TF_StringDealloc(TF_TString* tstr) {
  // As upstream's: what owns nothing stays as it is.
  if (capi::FormOf(*tstr) == TF_TSTR_LARGE ||
      (capi::FormOf(*tstr) == TF_TSTR_VIEW && tstr->u.view.owner_ref)) {
    capi::Release(tstr);
  }
}
