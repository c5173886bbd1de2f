// Objects of S3 as files: s3://bucket/key.
#pragma once

#include "base/files/file_system.h"

namespace headrace {

// Talks to AWS, or to the server of AWS_ENDPOINT_URL and S3_ENDPOINT, by the
// keys of the environment (s3_settings.h). A folder is what keys go on behind a
// slash from; CreateDirectory makes an object "folder/" without bytes. What is
// written is an object when it is sent, by Sync and Close. Renames copy and
// delete: not at once, and folders key by key. Lives for ever.
FileSystem* S3FileSystem();

}  // namespace headrace
