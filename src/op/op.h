// What an op's file includes.
#pragma once

#include "op/emitter.h"
#include "op/gradient.h"
#include "op/kernel.h"
#include "op/op_def.h"
#include "op/shape_context.h"
