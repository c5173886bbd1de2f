// Files of HDFS: hdfs://, webhdfs:// and swebhdfs:// paths.
#pragma once

#include "base/files/file_system.h"

namespace headrace {

// Talks WebHDFS to the NameNodes of the path (hadoop_config.h), as the user of
// HADOOP_USER_NAME, of a Kerberos ticket where a NameNode asks for one, or by a
// delegation token of HADOOP_TOKEN_FILE_LOCATION. A call waits for
// HEADRACE_HDFS_TIMEOUT seconds (60), a transfer as long as it moves. What is
// written is sent by Sync and Close; see spooled_writer.h. Folders need not be
// made first. Lives for ever.
FileSystem* HdfsFileSystem();

}  // namespace headrace
