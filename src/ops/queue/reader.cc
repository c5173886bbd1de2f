#include "ops/queue/reader.h"

#include "base/coding.h"

namespace headrace {
namespace {

// Serialized state, a protocol buffer:
//   1: units started   2: units finished   3: records produced   (varints)
//   4: the unit at hand (bytes)
constexpr uint32_t kStarted = 1 << 3, kFinished = 2 << 3, kProduced = 3 << 3;
constexpr uint32_t kUnit = 4 << 3 | 2;

void PutCount(uint32_t tag, int64_t count, std::string* out) {
  // As protocol buffers: a count of 0 is not written.
  if (count == 0) return;
  PutVarint32(out, tag);
  PutVarint64(out, static_cast<uint64_t>(count));
}

}  // namespace

Status Reader::Start(TupleQueue& queue) {
  if (open_) return OkStatus();
  HR_ASSIGN_OR_RETURN(std::vector<Tuple> taken, queue.Dequeue(1, false));
  const Tuple& tuple = taken[0];
  if (tuple.size() != 1 || tuple[0].dtype() != DType::kString ||
      tuple[0].num_elements() != 1) {
    return InvalidArgument("Expected to dequeue a one-element string tensor");
  }
  unit_ = tuple[0].scalar<std::string>();
  ++started_;
  Status opened = Open();
  if (!opened.ok()) {
    ++finished_;
    return opened;
  }
  open_ = true;
  return OkStatus();
}

StatusOr<Reader::Record> Reader::Read(TupleQueue& queue) {
  HR_ASSIGN_OR_RETURN(std::vector<Record> records, ReadUpTo(1, queue));
  return std::move(records[0]);
}

StatusOr<std::vector<Reader::Record>> Reader::ReadUpTo(int64_t n,
                                                       TupleQueue& queue) {
  MutexLock lock(mutex_);
  std::vector<Record> out;
  while (true) {
    HR_RETURN_IF_ERROR(Start(queue));
    while (static_cast<int64_t>(out.size()) < n) {
      HR_RETURN_IF_ERROR(CheckStop());
      Record record;
      StatusOr<bool> more = Next(&record);
      if (!more.ok() || !*more) {
        Close();
        open_ = false;
        ++finished_;
        if (!more.ok()) return more.status();
        break;
      }
      ++produced_;
      out.push_back(std::move(record));
      // A unit of one record is finished with it.
      if (serializable()) {
        Close();
        open_ = false;
        ++finished_;
        break;
      }
    }
    // What a unit has left is given at once, and no other unit is waited for;
    // an empty unit is passed over.
    if (!out.empty()) return out;
  }
}

int64_t Reader::records_produced() const {
  MutexLock lock(mutex_);
  return produced_;
}

int64_t Reader::units_completed() const {
  MutexLock lock(mutex_);
  return finished_;
}

void Reader::ResetLocked() {
  if (open_) Close();
  open_ = false;
  started_ = finished_ = produced_ = 0;
  unit_.clear();
}

void Reader::Reset() {
  MutexLock lock(mutex_);
  ResetLocked();
}

StatusOr<std::string> Reader::Serialize() const {
  MutexLock lock(mutex_);
  if (!serializable()) return Unimplemented("Reader SerializeState");
  std::string out;
  PutCount(kStarted, started_, &out);
  PutCount(kFinished, finished_, &out);
  PutCount(kProduced, produced_, &out);
  if (!unit_.empty()) {
    PutVarint32(&out, kUnit);
    PutVarint64(&out, unit_.size());
    out += unit_;
  }
  return out;
}

Status Reader::Restore(const std::string& state) {
  MutexLock lock(mutex_);
  if (!serializable()) return Unimplemented("Reader RestoreState");
  int64_t counts[3] = {};
  std::string unit;
  absl::string_view rest = state;
  const Status damaged = InvalidArgument("Could not parse the reader's state");
  while (!rest.empty()) {
    uint32_t tag = 0;
    uint64_t value = 0;
    if (!GetVarint32(&rest, &tag) || !GetVarint64(&rest, &value)) {
      return damaged;
    }
    if (tag == kUnit) {
      if (value > rest.size()) return damaged;
      unit = std::string(rest.substr(0, value));
      rest.remove_prefix(value);
    } else if (tag == kStarted || tag == kFinished || tag == kProduced) {
      counts[(tag >> 3) - 1] = static_cast<int64_t>(value);
    } else {
      return damaged;
    }
  }
  // At most one unit is at hand: one started and not finished.
  const bool sane = counts[0] >= 0 && counts[1] >= 0 && counts[2] >= 0 &&
                    counts[1] <= counts[0] && counts[0] - counts[1] <= 1;
  if (!sane) return damaged;
  ResetLocked();
  started_ = counts[0];
  finished_ = counts[1];
  produced_ = counts[2];
  if (started_ == finished_) return OkStatus();
  // The one record of the unit at hand was given already, or is still to come;
  // as upstream, it comes again.
  unit_ = std::move(unit);
  HR_RETURN_IF_ERROR(Open());
  open_ = true;
  return OkStatus();
}

}  // namespace headrace
