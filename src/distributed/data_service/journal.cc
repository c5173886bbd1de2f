#include "distributed/data_service/journal.h"

#include "absl/strings/match.h"
#include "base/files/files.h"

namespace headrace::distributed::data_service {
namespace {

Status Replay(const RandomAccessFile* file, DispatcherState* state) {
  RecordReader reader(file);
  std::string record;
  while (true) {
    const StatusOr<bool> more = reader.Next(&record);
    if (!more.ok()) {
      // A write that a kill cut short is the last one.
      return absl::StartsWith(more.status().message(), "truncated")
                 ? OkStatus()
                 : more.status();
    }
    if (!*more) return OkStatus();
    DispatcherUpdate update;
    if (!update.ParseFromString(record)) {
      return DataLoss("the dispatcher's journal is damaged at byte ",
                      reader.offset());
    }
    HR_RETURN_IF_ERROR(state->Apply(update));
  }
}

}  // namespace

StatusOr<std::unique_ptr<Journal>> Journal::Open(const std::string& folder,
                                                 DispatcherState* state) {
  std::string local;
  HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(folder, &local));
  HR_RETURN_IF_ERROR(CreateDirectories(fs, local));
  const std::string path = JoinPath(local, "dispatcher.journal");
  const std::string fresh = JoinPath(local, "dispatcher.journal.new");
  if (FileExists(fs, path)) {
    HR_ASSIGN_OR_RETURN(const auto old, fs->OpenToRead(path));
    HR_RETURN_IF_ERROR(Replay(old.get(), state));
  }
  std::unique_ptr<Journal> made(new Journal);
  HR_ASSIGN_OR_RETURN(made->file_,
                      fs->OpenToWrite(fresh, WriteMode::kTruncate));
  HR_ASSIGN_OR_RETURN(made->writer_, RecordWriter::Create(made->file_.get()));
  for (const DispatcherUpdate& update : state->Updates()) {
    HR_RETURN_IF_ERROR(made->writer_->Write(update.SerializeAsString()));
  }
  HR_RETURN_IF_ERROR(made->writer_->Flush());
  HR_RETURN_IF_ERROR(made->file_->Sync());
  HR_RETURN_IF_ERROR(fs->Rename(fresh, path));
  HR_RETURN_IF_ERROR(fs->SyncDirectory(local));
  return made;
}

Status Journal::Add(const DispatcherUpdate& update) {
  HR_RETURN_IF_ERROR(writer_->Write(update.SerializeAsString()));
  return writer_->Flush();
}

}  // namespace headrace::distributed::data_service
