// TensorFlow's C interface, as bindings of other languages use it.
//
// Functions that can fail take a status, which must not be null, and set it
// whether or not they fail. Null for any other pointer that a function needs is
// an error like any other. Indices and counts are checked.
#ifndef TENSORFLOW_C_C_API_H_
#define TENSORFLOW_C_C_API_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_attrtype.h"
#include "tensorflow/c/tf_buffer.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow/c/tf_tensor.h"
#include "tensorflow/c/tf_tstring.h"

#ifdef __cplusplus
extern "C" {
#endif

// The version of TensorFlow whose interface this is, "2.21.0".
TF_CAPI_EXPORT const char* TF_Version(void);

// Fills `to` from a serialised TensorProto.
TF_CAPI_EXPORT void TF_TensorFromProto(const TF_Buffer* from, TF_Tensor* to,
                                       TF_Status* status);

// --- Graphs. One may be used by several threads at once, and grows only. A
// graph with sessions lives until the last of them is deleted. Operations are
// the graph's: they need no deleting.
typedef struct TF_Graph TF_Graph;
typedef struct TF_Operation TF_Operation;
typedef struct TF_OperationDescription TF_OperationDescription;

// Input `index`, or output `index`, of `oper`.
typedef struct TF_Input {
  TF_Operation* oper;
  int index;
} TF_Input;
typedef struct TF_Output {
  TF_Operation* oper;
  int index;
} TF_Output;
typedef struct TF_StringView {
  const char* data;
  size_t len;
} TF_StringView;

TF_CAPI_EXPORT TF_Graph* TF_NewGraph(void);
TF_CAPI_EXPORT void TF_DeleteGraph(TF_Graph*);

// The operation of that name, or null. TF_GraphNextOperation gives one after
// another and null at the end; *pos begins as 0.
TF_CAPI_EXPORT TF_Operation* TF_GraphOperationByName(TF_Graph* graph,
                                                     const char* oper_name);
TF_CAPI_EXPORT TF_Operation* TF_GraphNextOperation(TF_Graph* graph,
                                                   size_t* pos);

// What is known of an output's sizes, merged with what was known before; -1 is
// an unknown size, num_dims -1 an unknown rank.
TF_CAPI_EXPORT void TF_GraphSetTensorShape(TF_Graph* graph, TF_Output output,
                                           const int64_t* dims,
                                           const int num_dims,
                                           TF_Status* status);
TF_CAPI_EXPORT int TF_GraphGetTensorNumDims(TF_Graph* graph, TF_Output output,
                                            TF_Status* status);
TF_CAPI_EXPORT void TF_GraphGetTensorShape(TF_Graph* graph, TF_Output output,
                                           int64_t* dims, int num_dims,
                                           TF_Status* status);

// The graph as a GraphDef, the definition of one op as an OpDef (a function of
// the graph included), and the VersionDef.
TF_CAPI_EXPORT void TF_GraphToGraphDef(TF_Graph* graph,
                                       TF_Buffer* output_graph_def,
                                       TF_Status* status);
TF_CAPI_EXPORT void TF_GraphGetOpDef(TF_Graph* graph, const char* op_name,
                                     TF_Buffer* output_op_def,
                                     TF_Status* status);
TF_CAPI_EXPORT void TF_GraphVersions(TF_Graph* graph,
                                     TF_Buffer* output_version_def,
                                     TF_Status* status);

// --- Making operations: describe one, then finish it. Finishing frees the
// description, whatever comes of it, and gives null where it is an error; that
// is where all mistakes of the description are told. The forms with Locked are
// for callers that have the graph to themselves.
TF_CAPI_EXPORT TF_OperationDescription* TF_NewOperation(TF_Graph* graph,
                                                        const char* op_type,
                                                        const char* oper_name);
TF_CAPI_EXPORT TF_OperationDescription* TF_NewOperationLocked(
    TF_Graph* graph, const char* op_type, const char* oper_name);
TF_CAPI_EXPORT TF_Operation* TF_FinishOperation(TF_OperationDescription* desc,
                                                TF_Status* status);
TF_CAPI_EXPORT TF_Operation* TF_FinishOperationLocked(
    TF_OperationDescription* desc, TF_Status* status);

// Inputs come in the order of the op's definition, a list as one call.
TF_CAPI_EXPORT void TF_AddInput(TF_OperationDescription* desc, TF_Output input);
TF_CAPI_EXPORT void TF_AddInputList(TF_OperationDescription* desc,
                                    const TF_Output* inputs, int num_inputs);
TF_CAPI_EXPORT void TF_AddControlInput(TF_OperationDescription* desc,
                                       TF_Operation* input);
TF_CAPI_EXPORT void TF_SetDevice(TF_OperationDescription* desc,
                                 const char* device);
TF_CAPI_EXPORT void TF_ColocateWith(TF_OperationDescription* desc,
                                    TF_Operation* op);

// Attributes. Values are copied. Lengths are in bytes, num_dims -1 is an
// unknown rank.
TF_CAPI_EXPORT void TF_SetAttrString(TF_OperationDescription* desc,
                                     const char* attr_name, const void* value,
                                     size_t length);
TF_CAPI_EXPORT void TF_SetAttrStringList(TF_OperationDescription* desc,
                                         const char* attr_name,
                                         const void* const* values,
                                         const size_t* lengths, int num_values);
TF_CAPI_EXPORT void TF_SetAttrInt(TF_OperationDescription* desc,
                                  const char* attr_name, int64_t value);
TF_CAPI_EXPORT void TF_SetAttrIntList(TF_OperationDescription* desc,
                                      const char* attr_name,
                                      const int64_t* values, int num_values);
TF_CAPI_EXPORT void TF_SetAttrFloat(TF_OperationDescription* desc,
                                    const char* attr_name, float value);
TF_CAPI_EXPORT void TF_SetAttrFloatList(TF_OperationDescription* desc,
                                        const char* attr_name,
                                        const float* values, int num_values);
TF_CAPI_EXPORT void TF_SetAttrBool(TF_OperationDescription* desc,
                                   const char* attr_name, unsigned char value);
TF_CAPI_EXPORT void TF_SetAttrBoolList(TF_OperationDescription* desc,
                                       const char* attr_name,
                                       const unsigned char* values,
                                       int num_values);
TF_CAPI_EXPORT void TF_SetAttrType(TF_OperationDescription* desc,
                                   const char* attr_name, TF_DataType value);
TF_CAPI_EXPORT void TF_SetAttrTypeList(TF_OperationDescription* desc,
                                       const char* attr_name,
                                       const TF_DataType* values,
                                       int num_values);
TF_CAPI_EXPORT void TF_SetAttrShape(TF_OperationDescription* desc,
                                    const char* attr_name, const int64_t* dims,
                                    int num_dims);
TF_CAPI_EXPORT void TF_SetAttrShapeList(TF_OperationDescription* desc,
                                        const char* attr_name,
                                        const int64_t* const* dims,
                                        const int* num_dims, int num_shapes);
TF_CAPI_EXPORT void TF_SetAttrTensor(TF_OperationDescription* desc,
                                     const char* attr_name, TF_Tensor* value,
                                     TF_Status* status);
TF_CAPI_EXPORT void TF_SetAttrTensorList(TF_OperationDescription* desc,
                                         const char* attr_name,
                                         TF_Tensor* const* values,
                                         int num_values, TF_Status* status);
TF_CAPI_EXPORT void TF_SetAttrFuncName(TF_OperationDescription* desc,
                                       const char* attr_name, const char* value,
                                       size_t length);
TF_CAPI_EXPORT void TF_SetAttrPlaceholder(TF_OperationDescription* desc,
                                          const char* attr_name,
                                          const char* placeholder);

// The same from serialised TensorShapeProtos and AttrValues.
TF_CAPI_EXPORT void TF_SetAttrTensorShapeProto(TF_OperationDescription* desc,
                                               const char* attr_name,
                                               const void* proto,
                                               size_t proto_len,
                                               TF_Status* status);
TF_CAPI_EXPORT void TF_SetAttrTensorShapeProtoList(
    TF_OperationDescription* desc, const char* attr_name,
    const void* const* protos, const size_t* proto_lens, int num_shapes,
    TF_Status* status);
TF_CAPI_EXPORT void TF_SetAttrValueProto(TF_OperationDescription* desc,
                                         const char* attr_name,
                                         const void* proto, size_t proto_len,
                                         TF_Status* status);

// --- Asking operations. Texts live as long as the graph.
TF_CAPI_EXPORT const char* TF_OperationName(TF_Operation* oper);
TF_CAPI_EXPORT const char* TF_OperationOpType(TF_Operation* oper);
TF_CAPI_EXPORT const char* TF_OperationDevice(TF_Operation* oper);
TF_CAPI_EXPORT int TF_OperationNumInputs(TF_Operation* oper);
TF_CAPI_EXPORT TF_DataType TF_OperationInputType(TF_Input oper_in);
TF_CAPI_EXPORT TF_Output TF_OperationInput(TF_Input oper_in);
TF_CAPI_EXPORT int TF_OperationNumOutputs(TF_Operation* oper);
TF_CAPI_EXPORT TF_DataType TF_OperationOutputType(TF_Output oper_out);

// How many tensors one argument of the definition stands for; -1 and an error
// where there is no such argument.
TF_CAPI_EXPORT int TF_OperationInputListLength(TF_Operation* oper,
                                               const char* arg_name,
                                               TF_Status* status);
TF_CAPI_EXPORT int TF_OperationOutputListLength(TF_Operation* oper,
                                                const char* arg_name,
                                                TF_Status* status);

// Arrays of so many places are filled as far as they go; the functions that
// return a number say how many there are.
TF_CAPI_EXPORT void TF_OperationAllInputs(TF_Operation* oper, TF_Output* inputs,
                                          int max_inputs);
TF_CAPI_EXPORT int TF_OperationOutputNumConsumers(TF_Output oper_out);
TF_CAPI_EXPORT int TF_OperationOutputConsumers(TF_Output oper_out,
                                               TF_Input* consumers,
                                               int max_consumers);
TF_CAPI_EXPORT int TF_OperationNumControlInputs(TF_Operation* oper);
TF_CAPI_EXPORT int TF_OperationGetControlInputs(TF_Operation* oper,
                                                TF_Operation** control_inputs,
                                                int max_control_inputs);
TF_CAPI_EXPORT int TF_OperationNumControlOutputs(TF_Operation* oper);
TF_CAPI_EXPORT int TF_OperationGetControlOutputs(TF_Operation* oper,
                                                 TF_Operation** control_outputs,
                                                 int max_control_outputs);

// Attributes of an operation, those that were inferred or left at their default
// included. First the kind and sizes: list_size is -1 for what is no list;
// total_size is bytes of a string, dimensions of a shape (-1: unknown rank), or
// the sum of them in a list, and -1 otherwise.
typedef struct TF_AttrMetadata {
  unsigned char is_list;
  int64_t list_size;
  TF_AttrType type;
  int64_t total_size;
} TF_AttrMetadata;

TF_CAPI_EXPORT TF_AttrMetadata TF_OperationGetAttrMetadata(
    TF_Operation* oper, const char* attr_name, TF_Status* status);
TF_CAPI_EXPORT int TF_OperationGetNumAttrs(TF_Operation* oper);
TF_CAPI_EXPORT int TF_OperationGetAttrNameLength(TF_Operation* oper, int i);
TF_CAPI_EXPORT void TF_OperationGetAttrName(TF_Operation* oper, int i,
                                            char* output, TF_Status* status);

// Then the value: InvalidArgument for another kind. Strings and shapes of lists
// point into `storage`, which total_size says the least size of. Tensors are
// the caller's to delete.
TF_CAPI_EXPORT void TF_OperationGetAttrString(TF_Operation* oper,
                                              const char* attr_name,
                                              void* value, size_t max_length,
                                              TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrStringList(
    TF_Operation* oper, const char* attr_name, void** values, size_t* lengths,
    int max_values, void* storage, size_t storage_size, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrInt(TF_Operation* oper,
                                           const char* attr_name,
                                           int64_t* value, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrIntList(TF_Operation* oper,
                                               const char* attr_name,
                                               int64_t* values, int max_values,
                                               TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrFloat(TF_Operation* oper,
                                             const char* attr_name,
                                             float* value, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrFloatList(TF_Operation* oper,
                                                 const char* attr_name,
                                                 float* values, int max_values,
                                                 TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrBool(TF_Operation* oper,
                                            const char* attr_name,
                                            unsigned char* value,
                                            TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrBoolList(TF_Operation* oper,
                                                const char* attr_name,
                                                unsigned char* values,
                                                int max_values,
                                                TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrType(TF_Operation* oper,
                                            const char* attr_name,
                                            TF_DataType* value,
                                            TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrTypeList(TF_Operation* oper,
                                                const char* attr_name,
                                                TF_DataType* values,
                                                int max_values,
                                                TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrShape(TF_Operation* oper,
                                             const char* attr_name,
                                             int64_t* value, int num_dims,
                                             TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrShapeList(
    TF_Operation* oper, const char* attr_name, int64_t** dims, int* num_dims,
    int num_shapes, int64_t* storage, int storage_size, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrTensor(TF_Operation* oper,
                                              const char* attr_name,
                                              TF_Tensor** value,
                                              TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrTensorList(TF_Operation* oper,
                                                  const char* attr_name,
                                                  TF_Tensor** values,
                                                  int max_values,
                                                  TF_Status* status);

// As protos: TensorShapeProto, AttrValue, NodeDef.
TF_CAPI_EXPORT void TF_OperationGetAttrTensorShapeProto(TF_Operation* oper,
                                                        const char* attr_name,
                                                        TF_Buffer* value,
                                                        TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrTensorShapeProtoList(
    TF_Operation* oper, const char* attr_name, TF_Buffer** values,
    int max_values, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrValueProto(TF_Operation* oper,
                                                  const char* attr_name,
                                                  TF_Buffer* output_attr_value,
                                                  TF_Status* status);
TF_CAPI_EXPORT void TF_OperationToNodeDef(TF_Operation* oper,
                                          TF_Buffer* output_node_def,
                                          TF_Status* status);

// The value of an output that follows from the graph alone: 1 and a tensor, the
// caller's to delete; 0 where it does not, which is no error.
TF_CAPI_EXPORT unsigned char TF_TryEvaluateConstant(TF_Graph* graph,
                                                    TF_Output output,
                                                    TF_Tensor** result,
                                                    TF_Status* status);

// --- Importing GraphDefs. Names are of the GraphDef, without the prefix.
typedef struct TF_ImportGraphDefOptions TF_ImportGraphDefOptions;
typedef struct TF_ImportGraphDefResults TF_ImportGraphDefResults;

TF_CAPI_EXPORT TF_ImportGraphDefOptions* TF_NewImportGraphDefOptions(void);
TF_CAPI_EXPORT void TF_DeleteImportGraphDefOptions(
    TF_ImportGraphDefOptions* opts);
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsSetPrefix(
    TF_ImportGraphDefOptions* opts, const char* prefix);
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsSetDefaultDevice(
    TF_ImportGraphDefOptions* opts, const char* device);
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsSetUniquifyNames(
    TF_ImportGraphDefOptions* opts, unsigned char uniquify_names);
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsSetUniquifyPrefix(
    TF_ImportGraphDefOptions* opts, unsigned char uniquify_prefix);

// Inputs and control inputs that are read from what the graph has already, and
// what all that is imported waits for.
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsAddInputMapping(
    TF_ImportGraphDefOptions* opts, const char* src_name, int src_index,
    TF_Output dst);
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsRemapControlDependency(
    TF_ImportGraphDefOptions* opts, const char* src_name, TF_Operation* dst);
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsAddControlDependency(
    TF_ImportGraphDefOptions* opts, TF_Operation* oper);

// What is wanted of the import, in the order of the calls.
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsAddReturnOutput(
    TF_ImportGraphDefOptions* opts, const char* oper_name, int index);
TF_CAPI_EXPORT int TF_ImportGraphDefOptionsNumReturnOutputs(
    const TF_ImportGraphDefOptions* opts);
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsAddReturnOperation(
    TF_ImportGraphDefOptions* opts, const char* oper_name);
TF_CAPI_EXPORT int TF_ImportGraphDefOptionsNumReturnOperations(
    const TF_ImportGraphDefOptions* opts);

// All of the GraphDef or, on error, none of its nodes.
TF_CAPI_EXPORT void TF_GraphImportGraphDef(
    TF_Graph* graph, const TF_Buffer* graph_def,
    const TF_ImportGraphDefOptions* options, TF_Status* status);
TF_CAPI_EXPORT void TF_GraphImportGraphDefWithReturnOutputs(
    TF_Graph* graph, const TF_Buffer* graph_def,
    const TF_ImportGraphDefOptions* options, TF_Output* return_outputs,
    int num_return_outputs, TF_Status* status);
TF_CAPI_EXPORT TF_ImportGraphDefResults* TF_GraphImportGraphDefWithResults(
    TF_Graph* graph, const TF_Buffer* graph_def,
    const TF_ImportGraphDefOptions* options, TF_Status* status);

// The same where `graph_def` points to a C++ GraphDef object. Unimplemented:
// this library shares no C++ classes with its callers.
TF_CAPI_EXPORT TF_ImportGraphDefResults*
TF_GraphImportGraphDefWithResultsNoSerialization(
    TF_Graph* graph, const TF_Buffer* graph_def,
    const TF_ImportGraphDefOptions* options, TF_Status* status);

// Arrays of the results live as long as these. The last: mapped inputs that the
// GraphDef does not have.
TF_CAPI_EXPORT void TF_ImportGraphDefResultsReturnOutputs(
    TF_ImportGraphDefResults* results, int* num_outputs, TF_Output** outputs);
TF_CAPI_EXPORT void TF_ImportGraphDefResultsReturnOperations(
    TF_ImportGraphDefResults* results, int* num_opers, TF_Operation*** opers);
TF_CAPI_EXPORT void TF_ImportGraphDefResultsMissingUnusedInputMappings(
    TF_ImportGraphDefResults* results, int* num_missing_unused_input_mappings,
    const char*** src_names, int** src_indexes);
TF_CAPI_EXPORT void TF_DeleteImportGraphDefResults(
    TF_ImportGraphDefResults* results);

// --- Changing operations that are there: for front ends that build loops.
// Sessions that have run an operation run it as it is from then on.
TF_CAPI_EXPORT void TF_UpdateEdge(TF_Graph* graph, TF_Output new_src,
                                  TF_Input dst, TF_Status* status);
TF_CAPI_EXPORT void TF_AddOperationControlInput(TF_Graph* graph,
                                                TF_Operation* op,
                                                TF_Operation* input);
TF_CAPI_EXPORT void TF_RemoveAllControlInputs(TF_Graph* graph,
                                              TF_Operation* op);
TF_CAPI_EXPORT void TF_SetAttr(TF_Graph* graph, TF_Operation* op,
                               const char* attr_name,
                               TF_Buffer* attr_value_proto, TF_Status* status);
TF_CAPI_EXPORT void TF_ClearAttr(TF_Graph* graph, TF_Operation* op,
                                 const char* attr_name, TF_Status* status);
TF_CAPI_EXPORT void TF_SetRequestedDevice(TF_Graph* graph, TF_Operation* op,
                                          const char* device);
TF_CAPI_EXPORT void TF_SetFullType(TF_Graph* graph, TF_Operation* op,
                                   const TF_Buffer* full_type_proto);
TF_CAPI_EXPORT void TF_AddWhileInputHack(TF_Graph* graph, TF_Output new_src,
                                         TF_Operation* dst, TF_Status* status);

// What is behind a resource or variant output, as a HandleShapeAndType list in
// CppShapeInferenceResult.HandleData form.
TF_CAPI_EXPORT TF_Buffer* TF_GetHandleShapeAndType(TF_Graph* graph,
                                                   TF_Output output);
TF_CAPI_EXPORT void TF_SetHandleShapeAndType(TF_Graph* graph, TF_Output output,
                                             const void* proto,
                                             size_t proto_len,
                                             TF_Status* status);

// Every op has a shape rule here or says that nothing is known: no effect.
TF_CAPI_EXPORT void TF_SetRequireShapeInferenceFns(TF_Graph* graph,
                                                   bool require);

// --- Functions: a part of a graph with inputs and outputs of its own.
// num_opers -1 is all but the inputs; output_names may be null. `opts` is null.
// The function is the caller's to delete; graphs that it was copied to keep
// theirs.
typedef struct TF_Function TF_Function;
typedef struct TF_FunctionOptions TF_FunctionOptions;

TF_CAPI_EXPORT TF_Function* TF_GraphToFunction(
    const TF_Graph* fn_body, const char* fn_name,
    unsigned char append_hash_to_fn_name, int num_opers,
    const TF_Operation* const* opers, int ninputs, const TF_Output* inputs,
    int noutputs, const TF_Output* outputs, const char* const* output_names,
    const TF_FunctionOptions* opts, const char* description, TF_Status* status);
TF_CAPI_EXPORT TF_Function* TF_GraphToFunctionWithControlOutputs(
    const TF_Graph* fn_body, const char* fn_name,
    unsigned char append_hash_to_fn_name, int num_opers,
    const TF_Operation* const* opers, int ninputs, const TF_Output* inputs,
    int noutputs, const TF_Output* outputs, const char* const* output_names,
    int ncontrol_outputs, const TF_Operation* const* control_outputs,
    const char* const* control_output_names, const TF_FunctionOptions* opts,
    const char* description, TF_Status* status);
TF_CAPI_EXPORT void TF_DeleteFunction(TF_Function* func);
TF_CAPI_EXPORT const char* TF_FunctionName(TF_Function* func);
TF_CAPI_EXPORT void TF_FunctionToFunctionDef(TF_Function* func,
                                             TF_Buffer* output_func_def,
                                             TF_Status* status);
TF_CAPI_EXPORT TF_Function* TF_FunctionImportFunctionDef(const void* proto,
                                                         size_t proto_len,
                                                         TF_Status* status);
TF_CAPI_EXPORT void TF_FunctionSetAttrValueProto(TF_Function* func,
                                                 const char* attr_name,
                                                 const void* proto,
                                                 size_t proto_len,
                                                 TF_Status* status);
TF_CAPI_EXPORT void TF_FunctionGetAttrValueProto(TF_Function* func,
                                                 const char* attr_name,
                                                 TF_Buffer* output_attr_value,
                                                 TF_Status* status);

// Adds a function (and one that is its gradient, or null) to a graph, whose
// nodes may call it then.
TF_CAPI_EXPORT void TF_GraphCopyFunction(TF_Graph* g, const TF_Function* func,
                                         const TF_Function* grad,
                                         TF_Status* status);
TF_CAPI_EXPORT int TF_GraphNumFunctions(TF_Graph* g);
TF_CAPI_EXPORT int TF_GraphGetFunctions(TF_Graph* g, TF_Function** funcs,
                                        int max_func, TF_Status* status);

// --- Loops. Make the condition (a bool scalar) and the body in the graphs of
// the params, set cond_output, body_outputs and name, then finish, or abort.
typedef struct TF_WhileParams {
  const int ninputs;
  TF_Graph* const cond_graph;
  const TF_Output* const cond_inputs;
  TF_Output cond_output;
  TF_Graph* const body_graph;
  const TF_Output* const body_inputs;
  TF_Output* const body_outputs;
  const char* name;
} TF_WhileParams;

TF_CAPI_EXPORT TF_WhileParams TF_NewWhile(TF_Graph* g, TF_Output* inputs,
                                          int ninputs, TF_Status* status);
TF_CAPI_EXPORT void TF_FinishWhile(const TF_WhileParams* params,
                                   TF_Status* status, TF_Output* outputs);
TF_CAPI_EXPORT void TF_AbortWhile(const TF_WhileParams* params);

// --- Gradients of y by x, added to the graph under "gradients" or the prefix.
// `dx` of the gradients that arrive may be null: ones. dy gets nx outputs; oper
// is null where nothing flows.
TF_CAPI_EXPORT void TF_AddGradients(TF_Graph* g, TF_Output* y, int ny,
                                    TF_Output* x, int nx, TF_Output* dx,
                                    TF_Status* status, TF_Output* dy);
TF_CAPI_EXPORT void TF_AddGradientsWithPrefix(TF_Graph* g, const char* prefix,
                                              TF_Output* y, int ny,
                                              TF_Output* x, int nx,
                                              TF_Output* dx, TF_Status* status,
                                              TF_Output* dy);

// --- Sessions. The config is a serialised ConfigProto.
typedef struct TF_SessionOptions TF_SessionOptions;
typedef struct TF_Session TF_Session;

TF_CAPI_EXPORT TF_SessionOptions* TF_NewSessionOptions(void);
TF_CAPI_EXPORT void TF_SetTarget(TF_SessionOptions* options,
                                 const char* target);
TF_CAPI_EXPORT void TF_SetConfig(TF_SessionOptions* options, const void* proto,
                                 size_t proto_len, TF_Status* status);
TF_CAPI_EXPORT void TF_DeleteSessionOptions(TF_SessionOptions*);

// A session runs parts of one graph, also such as came after it was made. Runs
// of several threads may overlap.
TF_CAPI_EXPORT TF_Session* TF_NewSession(TF_Graph* graph,
                                         const TF_SessionOptions* opts,
                                         TF_Status* status);
TF_CAPI_EXPORT void TF_CloseSession(TF_Session*, TF_Status* status);
TF_CAPI_EXPORT void TF_DeleteSession(TF_Session*, TF_Status* status);

// Nothing to do: runs see all of the graph. Errors of the graph are told by
// runs.
TF_CAPI_EXPORT void TF_ExtendSession(TF_Session* session, TF_Status* status);

// The graph of a SavedModel with exactly these tags, its variables restored and
// its init op run; the MetaGraphDef in *meta_graph_def unless that is null.
TF_CAPI_EXPORT TF_Session* TF_LoadSessionFromSavedModel(
    const TF_SessionOptions* session_options, const TF_Buffer* run_options,
    const char* export_dir, const char* const* tags, int tags_len,
    TF_Graph* graph, TF_Buffer* meta_graph_def, TF_Status* status);

// Runs what outputs and targets need. Feeds stay the caller's, results become
// theirs. run_options and run_metadata are serialised RunOptions and
// RunMetadata, or null. On error all of output_values are null.
TF_CAPI_EXPORT void TF_SessionRun(
    TF_Session* session, const TF_Buffer* run_options, const TF_Output* inputs,
    TF_Tensor* const* input_values, int ninputs, const TF_Output* outputs,
    TF_Tensor** output_values, int noutputs,
    const TF_Operation* const* target_opers, int ntargets,
    TF_Buffer* run_metadata, TF_Status*);

// One run in several steps: the handle, the caller's to delete, says which.
TF_CAPI_EXPORT void TF_SessionPRunSetup(TF_Session*, const TF_Output* inputs,
                                        int ninputs, const TF_Output* outputs,
                                        int noutputs,
                                        const TF_Operation* const* target_opers,
                                        int ntargets, const char** handle,
                                        TF_Status*);
TF_CAPI_EXPORT void TF_SessionPRun(TF_Session*, const char* handle,
                                   const TF_Output* inputs,
                                   TF_Tensor* const* input_values, int ninputs,
                                   const TF_Output* outputs,
                                   TF_Tensor** output_values, int noutputs,
                                   const TF_Operation* const* target_opers,
                                   int ntargets, TF_Status*);
TF_CAPI_EXPORT void TF_DeletePRunHandle(const char* handle);

// --- Sessions with a graph of their own, which names stand for.
typedef struct TF_DeprecatedSession TF_DeprecatedSession;

TF_CAPI_EXPORT TF_DeprecatedSession* TF_NewDeprecatedSession(
    const TF_SessionOptions*, TF_Status* status);
TF_CAPI_EXPORT void TF_CloseDeprecatedSession(TF_DeprecatedSession*,
                                              TF_Status* status);
TF_CAPI_EXPORT void TF_DeleteDeprecatedSession(TF_DeprecatedSession*,
                                               TF_Status* status);
TF_CAPI_EXPORT void TF_ExtendGraph(TF_DeprecatedSession*, const void* proto,
                                   size_t proto_len, TF_Status*);
TF_CAPI_EXPORT void TF_Run(TF_DeprecatedSession*, const TF_Buffer* run_options,
                           const char** input_names, TF_Tensor** inputs,
                           int ninputs, const char** output_names,
                           TF_Tensor** outputs, int noutputs,
                           const char** target_oper_names, int ntargets,
                           TF_Buffer* run_metadata, TF_Status*);
TF_CAPI_EXPORT void TF_PRunSetup(TF_DeprecatedSession*,
                                 const char** input_names, int ninputs,
                                 const char** output_names, int noutputs,
                                 const char** target_oper_names, int ntargets,
                                 const char** handle, TF_Status*);
TF_CAPI_EXPORT void TF_PRun(TF_DeprecatedSession*, const char* handle,
                            const char** input_names, TF_Tensor** inputs,
                            int ninputs, const char** output_names,
                            TF_Tensor** outputs, int noutputs,
                            const char** target_oper_names, int ntargets,
                            TF_Status*);

// Forgets the resources in these containers (none: all) of sessions with that
// target. Unimplemented for "", whose sessions share none.
TF_CAPI_EXPORT void TF_Reset(const TF_SessionOptions* opt,
                             const char** containers, int ncontainers,
                             TF_Status* status);

// --- Devices.
typedef struct TF_DeviceList TF_DeviceList;

TF_CAPI_EXPORT TF_DeviceList* TF_SessionListDevices(TF_Session* session,
                                                    TF_Status* status);
TF_CAPI_EXPORT TF_DeviceList* TF_DeprecatedSessionListDevices(
    TF_DeprecatedSession* session, TF_Status* status);
TF_CAPI_EXPORT void TF_DeleteDeviceList(TF_DeviceList* list);
TF_CAPI_EXPORT int TF_DeviceListCount(const TF_DeviceList* list);
TF_CAPI_EXPORT const char* TF_DeviceListName(const TF_DeviceList* list,
                                             int index, TF_Status* status);
TF_CAPI_EXPORT const char* TF_DeviceListType(const TF_DeviceList* list,
                                             int index, TF_Status* status);
TF_CAPI_EXPORT int64_t TF_DeviceListMemoryBytes(const TF_DeviceList* list,
                                                int index, TF_Status* status);
TF_CAPI_EXPORT uint64_t TF_DeviceListIncarnation(const TF_DeviceList* list,
                                                 int index, TF_Status* status);

// --- Libraries with further ops.
typedef struct TF_Library TF_Library;

TF_CAPI_EXPORT TF_Library* TF_LoadLibrary(const char* library_filename,
                                          TF_Status* status);
TF_CAPI_EXPORT TF_Buffer TF_GetOpList(TF_Library* lib_handle);
TF_CAPI_EXPORT void TF_DeleteLibraryHandle(TF_Library* lib_handle);

// Unimplemented: file systems are part of this library.
TF_CAPI_EXPORT void TF_RegisterFilesystemPlugin(const char* plugin_filename,
                                                TF_Status* status);

// --- What there is: an OpList, and KernelLists.
TF_CAPI_EXPORT TF_Buffer* TF_GetAllOpList(void);
TF_CAPI_EXPORT TF_Buffer* TF_GetAllRegisteredKernels(TF_Status* status);
TF_CAPI_EXPORT TF_Buffer* TF_GetRegisteredKernelsForOp(const char* name,
                                                       TF_Status* status);

// How ops are to be shown to users: ApiDefs made of an OpList, then changed by
// the text form of ApiDefs.
typedef struct TF_ApiDefMap TF_ApiDefMap;

TF_CAPI_EXPORT TF_ApiDefMap* TF_NewApiDefMap(TF_Buffer* op_list_buffer,
                                             TF_Status* status);
TF_CAPI_EXPORT void TF_DeleteApiDefMap(TF_ApiDefMap* apimap);
TF_CAPI_EXPORT void TF_ApiDefMapPut(TF_ApiDefMap* api_def_map, const char* text,
                                    size_t text_len, TF_Status* status);
TF_CAPI_EXPORT TF_Buffer* TF_ApiDefMapGet(TF_ApiDefMap* api_def_map,
                                          const char* name, size_t name_len,
                                          TF_Status* status);

// --- Servers of clusters: tasks, which sessions reach whose target is theirs.
// They talk over gRPC, whose library is loaded with the first of them.
typedef struct TF_Server TF_Server;

// Of a serialised ServerDef: it listens, and answers once it is started.
TF_CAPI_EXPORT TF_Server* TF_NewServer(const void* proto, size_t proto_len,
                                       TF_Status* status);
TF_CAPI_EXPORT void TF_ServerStart(TF_Server* server, TF_Status* status);
// Ends its sessions and steps; it cannot be started again.
TF_CAPI_EXPORT void TF_ServerStop(TF_Server* server, TF_Status* status);
// Waits for its stop. One that was not started is not waited for.
TF_CAPI_EXPORT void TF_ServerJoin(TF_Server* server, TF_Status* status);
// "grpc://host:port", which is the server's.
TF_CAPI_EXPORT const char* TF_ServerTarget(TF_Server* server);
// Stops it; who waits for it in TF_ServerJoin is let go.
TF_CAPI_EXPORT void TF_DeleteServer(TF_Server* server);

// Called with every line that the library would have logged.
TF_CAPI_EXPORT void TF_RegisterLogListener(void (*listener)(const char*));

#ifdef __cplusplus
}
#endif

#endif  // TENSORFLOW_C_C_API_H_
