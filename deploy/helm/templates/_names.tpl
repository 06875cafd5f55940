{{/* The release, short enough for what is put after it: a Service's name has 63 characters at most, a StatefulSet's 52, since its
pods are labelled with it and a hash. Neither has dots. */}}
{{- define "intents.name" -}}
{{- .Release.Name | replace "." "-" | trunc 45 | trimSuffix "-" -}}
{{- end -}}

{{- define "intents.core" -}}
{{- include "intents.name" . }}-core
{{- end -}}

{{- define "intents.gateway" -}}
{{- include "intents.name" . }}-gateway
{{- end -}}

{{/* What a component's pods are selected by: a list of the root and the component. It must never change. */}}
{{- define "intents.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "intents.labels" -}}
{{- $root := index . 0 -}}
{{ include "intents.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ $root.Chart.Name }}-{{ $root.Chart.Version }}
{{- end -}}

{{/* A component's image: a list of the root and the component's values. */}}
{{- define "intents.image" -}}
{{- $root := index . 0 -}}
{{- $image := (index . 1).image -}}
{{- with $root.Values.image.registry }}{{ . }}/{{ end -}}
{{ $image.repository }}:{{ $image.tag | default $root.Values.image.tag | default $root.Chart.AppVersion }}
{{- end -}}

{{- define "intents.secretName" -}}
{{- required "secret.name is required: the Secret with database-url, redis-url and gateway-secret" .Values.secret.name -}}
{{- end -}}

{{/* A setting from the Secret: a list of the root, the setting, the key's name in values and, if the Secret may lack the key, a
further word. */}}
{{- define "intents.fromSecret" -}}
{{- $root := index . 0 -}}
- name: {{ index . 1 }}
  valueFrom:
    secretKeyRef:
      name: {{ include "intents.secretName" $root }}
      key: {{ get $root.Values.secret.keys (index . 2) }}
      {{- if gt (len .) 3 }}
      optional: true
      {{- end }}
{{- end -}}

{{/* What pods mount: a list of the root, the component and its values. */}}
{{- define "intents.volumes" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $settings := and (ne $component "migrate") $root.Values.secret.settingsFiles -}}
{{- $rpc := and (eq $component "core") $root.Values.secret.keys.rpcFile -}}
{{- $quotes := and (eq $component "core") $root.Values.secret.keys.quotesFile -}}
{{- $authorities := $root.Values.certificateAuthorities -}}
{{- $extra := (index . 2).extraVolumes -}}
{{- if or $settings $rpc $quotes $authorities.configMap $authorities.secret $extra }}
volumes:
  {{- with $settings }}
  - name: settings
    secret:
      secretName: {{ . }}
      defaultMode: 0444
      items: [{key: {{ $component }}.env, path: {{ $component }}.env}]
  {{- end }}
  {{- with $rpc }}
  - name: rpc
    secret:
      secretName: {{ include "intents.secretName" $root }}
      defaultMode: 0444
      items: [{key: {{ . }}, path: rpc.json}]
  {{- end }}
  {{- with $quotes }}
  - name: quotes
    secret:
      secretName: {{ include "intents.secretName" $root }}
      defaultMode: 0444
      items: [{key: {{ . }}, path: quotes.json}]
  {{- end }}
  {{- if or $authorities.configMap $authorities.secret }}
  - name: authorities
    projected:
      defaultMode: 0444
      sources:
        {{- with $authorities.configMap }}
        - configMap: {name: {{ . }}}
        {{- end }}
        {{- with $authorities.secret }}
        - secret: {name: {{ . }}}
        {{- end }}
  {{- end }}
  {{- with $extra }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "intents.mounts" -}}
{{- $root := index . 0 -}}
{{- $settings := and (ne (index . 1) "migrate") $root.Values.secret.settingsFiles -}}
{{- $rpc := and (eq (index . 1) "core") $root.Values.secret.keys.rpcFile -}}
{{- $quotes := and (eq (index . 1) "core") $root.Values.secret.keys.quotesFile -}}
{{- $authorities := $root.Values.certificateAuthorities -}}
{{- $extra := (index . 2).extraVolumeMounts -}}
{{- if or $settings $rpc $quotes $authorities.configMap $authorities.secret $extra }}
volumeMounts:
  {{- if $settings }}
  - {name: settings, mountPath: /etc/intents, readOnly: true}
  {{- end }}
  {{- if $rpc }}
  - {name: rpc, mountPath: /etc/intents-rpc, readOnly: true}
  {{- end }}
  {{- if $quotes }}
  - {name: quotes, mountPath: /etc/intents-quotes, readOnly: true}
  {{- end }}
  {{- if or $authorities.configMap $authorities.secret }}
  - {name: authorities, mountPath: /etc/ssl/authorities, readOnly: true}
  {{- end }}
  {{- with $extra }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Go reads the authorities of a folder beside those of the image's bundle. */}}
{{- define "intents.authorities" -}}
{{- if or .Values.certificateAuthorities.configMap .Values.certificateAuthorities.secret }}
- {name: SSL_CERT_DIR, value: /etc/ssl/authorities}
{{- end }}
{{- end -}}

{{/* The base URL of all cores: the name of their headless Service, which has the address of each. */}}
{{- define "intents.coreURL" -}}
http://{{ include "intents.core" . }}.{{ .Release.Namespace }}.svc:8081
{{- end -}}

{{/* Probes of the operators' port. Readiness is asked often, so that a pod that ends gets no more clients. */}}
{{- define "intents.probes" -}}
startupProbe:
  httpGet: {path: /livez, port: operators}
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /livez, port: operators}
  periodSeconds: 10
  timeoutSeconds: 3
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: operators}
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 2
{{- end -}}

{{/* The restricted profile of the pod security standards, and a file system that nobody can write to. */}}
{{- define "intents.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "intents.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* Where a component's pods go: a list of the root, the component and its values. */}}
{{- define "intents.placement" -}}
{{- $root := index . 0 -}}
{{- $values := index . 2 -}}
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "intents.selector" (list $root (index $ 1)) | nindent 8 }}
  {{- end }}
{{- with $values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Further settings, sorted by name. */}}
{{- define "intents.settings" -}}
{{- range $name, $value := . }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end -}}
