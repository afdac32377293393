#include "textflag.h"

// func Lines(p unsafe.Pointer, n int)
TEXT ·Lines(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ n+8(FP), CX
next:
	SUBQ $1, CX
	JLT  done
	PREFETCHT0 (AX)
	ADDQ $64, AX
	JMP  next
done:
	RET
