// DatasetToTFRecord: the strings of a dataset, as a file of records.
#include "base/files/files.h"
#include "data/dataset_op.h"
#include "data/iterate/iterator_resource.h"
#include "formats/records.h"
#include "op/op_like.h"
#include "op/reach.h"

namespace headrace {
namespace {

Status CheckRecords(const ElementSpec& spec) {
  if (spec.types.size() != 1) {
    return InvalidArgument("ToTFRecordOp currently only support datasets of 1 ",
                           "single column, but got ", spec.types.size());
  }
  if (spec.types[0] != DType::kString) {
    return InvalidArgument("ToTFRecordOp currently only supports DT_STRING ",
                           "dataypes, but got ", DTypeName(spec.types[0]));
  }
  return OkStatus();
}

Status WriteRecords(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(DatasetPtr dataset, DatasetOf(c.input(0)));
  HR_RETURN_IF_ERROR(CheckRecords(dataset->spec()));
  HR_ASSIGN_OR_RETURN(const std::string name, TextInput(c, 1, "filename"));
  HR_ASSIGN_OR_RETURN(const std::string kind,
                      TextInput(c, 2, "compression_type"));
  HR_ASSIGN_OR_RETURN(const Compression compression, ParseCompression(kind));
  std::string path;
  HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(name, &path));
  HR_ASSIGN_OR_RETURN(auto file, fs->OpenToWrite(path, WriteMode::kTruncate));
  HR_ASSIGN_OR_RETURN(auto writer,
                      RecordWriter::Create(file.get(), compression));
  HR_ASSIGN_OR_RETURN(auto walk, Iteration::Begin(dataset, c.services()));
  while (true) {
    HR_RETURN_IF_ERROR(c.CheckCancelled());
    Element element;
    bool end = false;
    HR_RETURN_IF_ERROR(walk->Next(&element, &end));
    if (end) break;
    if (element[0].num_elements() != 1) {
      return InvalidArgument("a record must be one string, got shape ",
                             element[0].shape());
    }
    HR_RETURN_IF_ERROR(writer->Write(element[0].data<std::string>()[0]));
  }
  HR_RETURN_IF_ERROR(writer->Finish());
  return file->Close();
}

HR_OP(DatasetToTFRecord)
    .Traits({kWritesFiles})
    .Input("input_dataset: variant")
    .Input("filename: string")
    .Input("compression_type: string")
    .Doc("Writes the strings of a dataset to a file of records.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<WriteRecords>);

[[maybe_unused]] const bool kExperimentalToRecords =
    RegisterLike("ExperimentalDatasetToTFRecord", "DatasetToTFRecord");

}  // namespace
}  // namespace headrace
