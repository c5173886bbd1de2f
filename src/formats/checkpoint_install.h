// Puts the files of a checkpoint in place, so that whoever reads meanwhile, or
// after a kill at any moment, finds a whole checkpoint: the old or the new one.
//
// A checkpoint is its index: the data files that the index names must be there
// before it, and stay as they are while it does. So new data files never take
// the names of the ones that the old index uses: where they would (the same
// number of files again), they first come to stand as files 1.. of one more,
//
//   PREFIX.data-00001-of-00002     and an index that says so,
//
// then, the old index being gone, under their own names with a last index:
//
//   PREFIX.data-00000-of-00001
//
// Every step between is a checkpoint that any reader of the format can read.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/files/file_system.h"

namespace headrace {

// Writes an index as a new file `path`, brought to the disk as far as the
// checkpoint is. The data files are numbers [first, first + data.size()) of
// `num_shards`.
using IndexWriter = absl::FunctionRef<Status(const std::string& path, int first,
                                             int num_shards)>;

// Makes the data files `data` (names anywhere in the file system, complete)
// and an index into the checkpoint `prefix`, in place of one of that name. On
// an error what was there stays a checkpoint, `data` may have been renamed, and
// nothing new is left behind but what the error kept from being deleted.
// `sync`: returns when all renames have reached the disk.
Status InstallCheckpoint(FileSystem* fs, const std::string& prefix,
                         const std::vector<std::string>& data,
                         IndexWriter write_index, bool sync);

}  // namespace headrace
