// What is built over a FileSystem: whole files, atomic replacement, folders
// with all that is in them, glob patterns. All return the FileSystem's errors.
#pragma once

#include <string>
#include <vector>

#include "base/files/file_system.h"

namespace headrace {

// "a" + "b" is "a/b"; an absolute `name` or an empty `folder` gives `name`.
std::string JoinPath(StringView folder, StringView name);
// All before the last slash: "a/b" gives "a", "/a" "/", "a" "".
StringView DirName(StringView path);
// All behind the last slash.
StringView BaseName(StringView path);

bool FileExists(FileSystem* fs, const std::string& path);

StatusOr<std::string> ReadWholeFile(FileSystem* fs, const std::string& path);

// Fills `out` with the first bytes of a file, several parts at a time. What
// wants a large file in memory uses this: see file_system.h on mapping.
// OutOfRange when the file has fewer bytes, DataLoss when it lost some while it
// was read.
Status LoadFile(FileSystem* fs, const std::string& path, absl::Span<char> out);

// Replaces `path` at once: a temporary file beside it is written, brought to
// the disk and renamed. A reader, or a crash, sees the old bytes or the new
// ones. On an error the temporary file is deleted and `path` is as it was.
Status WriteFileAtomically(FileSystem* fs, const std::string& path,
                           StringView data);

// A name beside `path` that no other call of this or another process gives.
std::string TemporaryNameFor(StringView path);

// Deletes files of such names in a folder whose process, of this machine, is
// gone: it was killed while it wrote them.
Status DeleteAbandonedFiles(FileSystem* fs, const std::string& folder);

// Makes the folder and those it lies in; those that exist are fine.
Status CreateDirectories(FileSystem* fs, const std::string& path);

// Deletes a folder with all in it, or a file. Goes on after an error and
// returns the first.
Status DeleteRecursively(FileSystem* fs, const std::string& path);

// Copies the bytes, also from one file system to another; replaces `to`.
Status CopyFile(FileSystem* from_fs, const std::string& from, FileSystem* to_fs,
                const std::string& to);

// A second name for a file: a hard link where the file system has them, else a
// copy, synced. AlreadyExists when `to` is there.
Status LinkOrCopyFile(FileSystem* fs, const std::string& from,
                      const std::string& to);

// Paths that match a pattern, sorted; none is no error. In each part of the
// path `*` is any run, `?` any one character, [a-z] and [^a-z] (or [!a-z]) a
// set, and `\` takes the next character as it is. What a pattern finds that
// begins in the working folder begins with "./", as upstream.
StatusOr<std::vector<std::string>> MatchPaths(FileSystem* fs,
                                              const std::string& pattern);

// Whether a name without slashes matches such a pattern.
bool MatchesPattern(StringView name, StringView pattern);

}  // namespace headrace
