"""tf.io: files as tensors."""

from headrace.ops.faces import face

read_file = face("ReadFile", "read_file", "filename,name=None")
write_file = face("WriteFile", "write_file", "filename,contents,name=None")
matching_files = face("MatchingFiles", "matching_files", "pattern,name=None")
