// All real functions: include this one. Accuracy: README.md, a generated table.
#pragma once

#include "compiler/math/arc.h"
#include "compiler/math/atan.h"
#include "compiler/math/basic.h"
#include "compiler/math/erf.h"
#include "compiler/math/exp.h"
#include "compiler/math/log.h"
#include "compiler/math/pow.h"
#include "compiler/math/trig.h"
