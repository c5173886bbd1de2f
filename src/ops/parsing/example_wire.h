// Serialised Examples and SequenceExamples (example.proto) read where they
// lie, without making messages of them.
//
//   Example         := 1: Features
//   SequenceExample := 1: Features (context), 2: FeatureLists
//   Features        := 1: entry*      entry := 1: key, 2: Feature
//   FeatureLists    := 1: entry*      entry := 1: key, 2: FeatureList
//   FeatureList     := 1: Feature*
//   Feature         := 1: BytesList | 2: FloatList | 3: Int64List
//   ...List         := 1: value*      numbers packed or not
//
// All strings are views of the input. Functions give false for bytes that are
// no such message; unknown fields are passed over.
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "base/status.h"
#include "tensor/dtype.h"

namespace headrace {

// One Feature: the dtype of its values and the bytes of their list. A feature
// without a list has dtype kInvalid and counts as not there.
struct FeatureView {
  DType dtype = DType::kInvalid;
  StringView list;
};

// Calls fn(key, value) for each entry of a map, `message` being Features or
// FeatureLists; value is the serialised Feature or FeatureList. A key may come
// again: the last one counts.
bool ForEachEntry(StringView message,
                  absl::FunctionRef<void(StringView, StringView)> fn);

// Calls fn(field, bytes) for each length-delimited field of a message.
bool ForEachBytesField(StringView message,
                       absl::FunctionRef<bool(uint32_t, StringView)> fn);

// The map of an Example, "" when it has none. Several are parts of one: they
// are handed to `fn` one by one.
bool ForEachFeatureOfExample(
    StringView example, absl::FunctionRef<void(StringView, StringView)> fn);

bool ParseFeature(StringView feature, FeatureView* out);

// How many values a feature has.
bool CountValues(const FeatureView& feature, int64_t* count);
// Copies exactly `count` values, which CountValues said there are, to `out`
// (float, int64_t or std::string by dtype).
bool CopyValues(const FeatureView& feature, int64_t count, void* out);

}  // namespace headrace
