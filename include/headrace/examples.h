// Serialized Examples (tf.train.Example), as TFRecord files hold them.
//
//   auto batches = tf::data::Dataset::TFRecord("digits.tfrecord")
//                      .Batch(32)
//                      .Map([](const tf::Tensor& records) {
//     return tf::data::ParseExamples(
//         records, {{"image", {tf::DType::kString}},
//                   {"label", {tf::DType::kInt64}}});
//   });
#pragma once

#include <map>
#include <string>

#include "headrace/data.h"

namespace headrace::tf::data {

// What a feature is to become: float32, int64 or string values (the three kinds
// that an Example can hold) of that shape, whose sizes must all be known.
struct Feature {
  DType dtype = DType::kFloat32;
  TensorShape shape;
  // Where an Example has none: a tensor of that shape. Null: that is an error.
  // Of sequences, a scalar that short ones are filled up with (null: zero).
  Tensor default_value;
  // Any number of values of `shape`: they get an axis before it, as long as the
  // longest of the batch. One that is missing is empty.
  bool is_sequence = false;
};

// The features of a vector of serialized Examples (string [n]), by name, [n]
// and the feature's shape each; of a scalar, without [n]. Features of an
// Example that are not asked for are passed over. Throws kInvalidArgument for
// no features, other dtypes, shapes that are not known and defaults of another
// dtype or shape, and (where it runs) for bytes that are no Example and for
// values that are missing or do not fit. Works in traced functions, and in
// Dataset::Map best behind Batch: one call for all of a batch. Thread-safe.
HR_API Named ParseExamples(const Tensor& serialized,
                           const std::map<std::string, Feature>& features);

}  // namespace headrace::tf::data
