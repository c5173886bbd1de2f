// The dispatcher's journal: a file of records, each an update of its state. A
// kill at any byte leaves the updates before it.
#pragma once

#include <memory>
#include <string>

#include "distributed/data_service/state.h"
#include "formats/records.h"

namespace headrace::distributed::data_service {

// Not thread-safe.
class Journal {
 public:
  // Does the updates of the folder's journal to *state, and goes on behind them
  // in a new file that replaces the old one. What was cut at the old one's end
  // is left out; DataLoss where it is damaged otherwise.
  static StatusOr<std::unique_ptr<Journal>> Open(const std::string& folder,
                                                 DispatcherState* state);
  // Handed to the system: it outlives this process.
  Status Add(const DispatcherUpdate& update);

 private:
  std::unique_ptr<WritableFile> file_;
  std::unique_ptr<RecordWriter> writer_;
};

}  // namespace headrace::distributed::data_service
