// Objects that are made: whole, or in parts that become one object at once.
// Readers see the old object or the new one; what fails leaves the old one.
#pragma once

#include <memory>
#include <string>

#include "base/remote/s3_client.h"
#include "base/remote/spooled_writer.h"

namespace headrace {

// An object, and which version of it: "" where there is none or any will do.
struct S3Version {
  uint64_t size = 0;
  std::string tag;
};

// NotFound where there is no object of that key.
StatusOr<S3Version> VersionOf(S3Client& client, const S3Path& path);

// Puts an object without bytes. `only_new`: AlreadyExists where there is one
// (of servers that know If-None-Match).
Status PutEmpty(S3Client& client, const S3Path& path, bool only_new);

// Copies an object within S3, without its bytes passing here.
Status CopyObject(std::shared_ptr<S3Client> client, const S3Path& from,
                  const S3Path& to);

// An object whose first `base.size` bytes are those of its version `base`. Each
// Send makes a whole new object, of which what is there already is copied
// within S3 where that is much.
std::unique_ptr<Upload> NewS3Upload(std::shared_ptr<S3Client> client,
                                    S3Path path, S3Version base);

}  // namespace headrace
