// Any bytes as the state of an iterator: a variant of a checkpoint, a dataset
// that such a state holds, or an element of a file cache or snapshot.
#include "data/dataset_graph.h"
#include "data/element_codec.h"
#include "data/state.h"
#include "tensor/variant_codec.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace headrace {
namespace {

void ReadState(StringView bytes) {
  tensorflow::VariantTensorDataProto proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return;
  }
  proto.set_type_name("tensorflow::Iterator");
  StatusOr<Variant> state = VariantFromProto(proto);
  if (!state.ok()) return;
  Tensor states = *Tensor::Allocate(DType::kVariant, Shape{1});
  states.data<Variant>()[0] = *state;
  const StatusOr<StateReader> reader = StateReader::Make(states);
  const auto* held = state->get<IteratorState>();
  for (const auto& [key, value] : held->entries) {
    reader->Get(held->prefix, key).status().IgnoreError();
    reader->GetCount(held->prefix, key).status().IgnoreError();
  }
  reader->GetBuffer(held->prefix).status().IgnoreError();
  VariantToProto(*state, &proto).IgnoreError();
}

}  // namespace
}  // namespace headrace

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  using namespace headrace;
  if (size == 0 || size > 1 << 20) return 0;
  const StringView in(data + 1, size - 1);
  if (data[0] == 2) {
    const auto element = DecodeElement(in);
    std::string again;
    if (element.ok()) EncodeElement(*element, &again).IgnoreError();
  } else if (data[0] % 2 == 0) {
    ReadState(in);
  } else {
    DatasetOfGraph({std::string(in), "WindowOp/_2"}).status().IgnoreError();
  }
  return 0;
}
