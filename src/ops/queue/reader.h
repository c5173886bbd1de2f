// A reader takes names of files (or other units of work) from a queue and gives
// the records in them as pairs of strings, one unit behind the other.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "op/resource.h"
#include "ops/queue/tuple_queue.h"

namespace headrace {

// Thread-safe. A subclass reads one unit.
class Reader : public Resource {
 public:
  struct Record {
    std::string key, value;
  };

  explicit Reader(std::string kind) : kind_(std::move(kind)) {}
  std::string DebugString() const override { return kind_; }

  // The next record; takes names from `queue` where the unit at hand has no
  // more, waiting for them.
  StatusOr<Record> Read(TupleQueue& queue);
  // At least one record and at most `n`, all of one unit.
  StatusOr<std::vector<Record>> ReadUpTo(int64_t n, TupleQueue& queue);
  int64_t records_produced() const;
  int64_t units_completed() const;
  // As if it were new.
  void Reset();
  // The place between two units as bytes, and back (upstream's
  // ReaderBaseState). Unimplemented for readers that are within files.
  StatusOr<std::string> Serialize() const;
  Status Restore(const std::string& state);

 protected:
  // Prepares reading `unit_`.
  virtual Status Open() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // The next record of the unit; false at its end.
  virtual StatusOr<bool> Next(Record* record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  virtual void Close() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {}
  // Whether units have one record, so that the state is that between them.
  virtual bool serializable() const { return false; }

  mutable Mutex mutex_;
  std::string unit_ ABSL_GUARDED_BY(mutex_);  // the one at hand

 private:
  Status Start(TupleQueue& queue) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ResetLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string kind_;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t started_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t finished_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t produced_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace headrace
