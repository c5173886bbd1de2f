// Elements of datasets under way: a head that tells sizes, and behind it the
// tensors' bytes, without a copy on the way out.
#pragma once

#include <deque>
#include <vector>

#include "base/status.h"
#include "data/dataset.h"
#include "distributed/wire/bytes.h"

namespace headrace::distributed::data_service {

// An element as it leaves, or the error that its pipeline raised.
struct Packed {
  Status status;
  std::vector<Bytes> parts;
  bool by_snappy = false;
  size_t bytes = 0;
};

// Never fails: what has no bytes becomes an item of that error.
Packed Pack(const StatusOr<Element>& element, bool by_snappy);

Bytes WriteElements(const std::vector<Packed>& items, bool end);

struct ReadElements {
  std::vector<StatusOr<Element>> items;
  bool end = false;
};
// InvalidArgument where the bytes are no such answer; an item whose bytes are
// no element is an error of that item.
StatusOr<ReadElements> ReadAnswer(const Bytes& bytes);

}  // namespace headrace::distributed::data_service
