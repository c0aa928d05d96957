# of_type FOLDER NAME DTYPE: writes an example with rows of another type below build/, and says where.
of_type() {
    sed "s/bf16/$3/g" "examples/$2.fuse" >"build/$1/$2.$3.fuse"
    echo "build/$1/$2.$3.fuse"
}
# wide_of FOLDER NAME DTYPE: the same of DTYPE with weights of f32.
wide_of() {
    sed -E "s/bf16/$3/g; s/^( *(gamma|beta) *: )$3/\1f32/" "examples/$2.fuse" >"build/$1/$2.$3_wide.fuse"
    echo "build/$1/$2.$3_wide.fuse"
}
