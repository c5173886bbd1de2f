#include "ops/parsing/example_wire.h"

#include <cstring>

#include "base/coding.h"

namespace headrace {
namespace {

enum WireType : uint32_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kFixed32 = 5
};

// Takes a tag; false at bytes that are none.
bool GetTag(StringView* in, uint32_t* field, uint32_t* wire) {
  uint64_t tag;
  if (!GetVarint64(in, &tag) || tag > UINT32_MAX) return false;
  *field = static_cast<uint32_t>(tag >> 3);
  *wire = static_cast<uint32_t>(tag & 7);
  return *field != 0;
}

bool GetLengthDelimited(StringView* in, StringView* out) {
  uint64_t size;
  return GetVarint64(in, &size) && GetBytes(in, size, out);
}

bool Skip(StringView* in, uint32_t wire) {
  uint64_t ignored;
  StringView bytes;
  switch (wire) {
    case kVarint:
      return GetVarint64(in, &ignored);
    case kFixed64:
      return GetBytes(in, 8, &bytes);
    case kBytes:
      return GetLengthDelimited(in, &bytes);
    case kFixed32:
      return GetBytes(in, 4, &bytes);
  }
  return false;
}

int64_t CountVarints(StringView packed) {
  int64_t n = 0;
  for (const char c : packed) n += static_cast<unsigned char>(c) < 0x80;
  return n;
}

// Calls packed(bytes) for a packed run, and one(in) at a value that stands
// alone with wire type `single`, which it must take.
template <typename Packed, typename One>
bool ForEachRun(StringView list, uint32_t single, Packed packed, One one) {
  uint32_t field, wire;
  while (!list.empty()) {
    if (!GetTag(&list, &field, &wire)) return false;
    StringView run;
    if (field == 1 && wire == kBytes) {
      if (!GetLengthDelimited(&list, &run) || !packed(run)) return false;
    } else if (field == 1 && wire == single) {
      if (!one(&list)) return false;
    } else if (!Skip(&list, wire)) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool ForEachBytesField(StringView message,
                       absl::FunctionRef<bool(uint32_t, StringView)> fn) {
  uint32_t field, wire;
  while (!message.empty()) {
    if (!GetTag(&message, &field, &wire)) return false;
    StringView bytes;
    if (wire != kBytes) {
      if (!Skip(&message, wire)) return false;
    } else if (!GetLengthDelimited(&message, &bytes) || !fn(field, bytes)) {
      return false;
    }
  }
  return true;
}

bool ForEachEntry(StringView message,
                  absl::FunctionRef<void(StringView, StringView)> fn) {
  return ForEachBytesField(message, [&](uint32_t field, StringView entry) {
    if (field != 1) return true;
    StringView key, value;
    const bool ok = ForEachBytesField(entry, [&](uint32_t f, StringView bytes) {
      if (f == 1) key = bytes;
      if (f == 2) value = bytes;
      return true;
    });
    if (ok) fn(key, value);
    return ok;
  });
}

bool ForEachFeatureOfExample(
    StringView example, absl::FunctionRef<void(StringView, StringView)> fn) {
  return ForEachBytesField(example, [&](uint32_t field, StringView features) {
    return field != 1 || ForEachEntry(features, fn);
  });
}

bool ParseFeature(StringView feature, FeatureView* out) {
  *out = {};
  return ForEachBytesField(feature, [&](uint32_t field, StringView list) {
    switch (field) {
      case 1:
        *out = {DType::kString, list};
        break;
      case 2:
        *out = {DType::kFloat, list};
        break;
      case 3:
        *out = {DType::kInt64, list};
        break;
    }
    return true;
  });
}

bool CountValues(const FeatureView& feature, int64_t* count) {
  int64_t n = 0;
  bool ok = true;
  if (feature.dtype == DType::kString) {
    ok = ForEachBytesField(feature.list, [&](uint32_t field, StringView) {
      n += field == 1;
      return true;
    });
  } else if (feature.dtype == DType::kFloat) {
    ok = ForEachRun(
        feature.list, kFixed32,
        [&](StringView run) {
          n += run.size() / sizeof(float);
          return run.size() % sizeof(float) == 0;
        },
        [&](StringView* in) {
          StringView bytes;
          ++n;
          return GetBytes(in, sizeof(float), &bytes);
        });
  } else if (feature.dtype == DType::kInt64) {
    ok = ForEachRun(
        feature.list, kVarint,
        [&](StringView run) {
          n += CountVarints(run);
          return run.empty() || static_cast<unsigned char>(run.back()) < 0x80;
        },
        [&](StringView* in) {
          uint64_t ignored;
          ++n;
          return GetVarint64(in, &ignored);
        });
  }
  *count = n;
  return ok;
}

bool CopyValues(const FeatureView& feature, int64_t count, void* out) {
  if (feature.dtype == DType::kString) {
    auto* s = static_cast<std::string*>(out);
    auto* const end = s + count;
    return ForEachBytesField(feature.list,
                             [&](uint32_t f, StringView bytes) {
                               if (f != 1) return true;
                               if (s == end) return false;
                               (s++)->assign(bytes.data(), bytes.size());
                               return true;
                             }) &&
           s == end;
  }
  if (feature.dtype == DType::kFloat) {
    auto* v = static_cast<float*>(out);
    auto* const end = v + count;
    const auto copy = [&](StringView bytes) {
      const size_t n = bytes.size() / sizeof(float);
      if (static_cast<size_t>(end - v) < n) return false;
      if (n > 0) std::memcpy(v, bytes.data(), n * sizeof(float));
      v += n;
      return true;
    };
    return ForEachRun(feature.list, kFixed32, copy,
                      [&](StringView* in) {
                        StringView bytes;
                        return GetBytes(in, sizeof(float), &bytes) &&
                               copy(bytes);
                      }) &&
           v == end;
  }
  auto* v = static_cast<int64_t*>(out);
  auto* const end = v + count;
  const auto take = [&](StringView* in) {
    uint64_t value;
    if (v == end || !GetVarint64(in, &value)) return false;
    *v++ = static_cast<int64_t>(value);
    return true;
  };
  return ForEachRun(
             feature.list, kVarint,
             [&](StringView run) {
               while (!run.empty()) {
                 if (!take(&run)) return false;
               }
               return true;
             },
             take) &&
         v == end;
}

}  // namespace headrace
